package kernel

// Products on a matrix unit. Intel's AMX multiplies tiles of bfloat16 and adds the products in float32. A float32 is
// the sum of three bfloat16, its pieces: the first one is x rounded, the next one is the rest rounded, and the last one
// is what remains. A product of two float32 is the sum of nine products of pieces. We leave out the three least ones,
// which are below 2⁻²⁴ of the product together.
//
// C is computed in blocks of 32×32, and k in runs of 512 terms. A and B are packed in panels, which hold the pieces of
// 32 rows of op(A), or of 32 columns of op(B), for the terms of a run. Each run is summed from zero, first the products
// with small pieces, and then added to C. So the sum of a long product is rounded less often than with multiply-adds in
// float32. With S = Σ|a||b| and 2⁻²⁴ as the unit, the errors of an element of op(A)·op(B) add up to at most 38 + k/512:
//
//   - 17 in the sums of 16 products inside an instruction, and of the two sums that it makes
//   - 16 in adding the instructions of a run, one for 32 terms
//   - 1 for products left out, and 1 for the 97 roundings of products with small pieces, whose sums are below S/120
//   - 0.25 for sums that the matrix unit flushes to zero; amxRange.safe ensures that they are small
//   - k/512 in adding the runs
//   - 2 for alpha and beta
//
// Longer runs have a larger bound, but not larger errors: roundings cancel, and runs of 512 add fewer. For 1,024 normal
// numbers, the relative Frobenius error was 8.8·10⁻⁸ with runs of 512, 7.6·10⁻⁸ with runs of 128 and 4.1·10⁻⁷ with
// multiply-adds; for 16,384 it was 1.3·10⁻⁷, 2.1·10⁻⁷ and 4.1·10⁻⁷.
//
// Runs of an element that the unit can't compute, such as those with infinities, use multiply-adds. Each adds up to 512
// to the bound.
const (
	amxSide    = 32              // rows and columns of a block of C
	amxRunBits = 9               // see amxRange
	amxRun     = 1 << amxRunBits // terms of a run: C is updated once per run, which costs more than shorter panels save
	amxCols    = 1024            // most columns for which B is packed at once; for a run, its pieces take 3 MB
	amxBand    = 256             // most rows of C per task; for a run, their panels of A take 768 KB of the second cache
	amxFew     = 3 << 19         // bytes of panels of B that stay in the second cache beside the panels of a low band of A

	amxSums = 1 << 22 // most sums that are kept for all rows, if a product of bfloat16 has very many terms
)

// An amxUnit holds the functions that compute with a matrix unit, or in the same way in Go.
type amxUnit struct {
	pieces int                    // 3, or 1 for products of bfloat16
	pays   func(m, n, k int) bool // reports whether to compute a product of these sizes with the unit

	// along packs 32 lines of 32·blocks adjacent elements, and across packs 32·blocks rows of 32 adjacent elements, one
	// per line. ld is the distance between lines or rows. See amxModel for the order of the panel's elements.
	along, across func(dst []uint16, src []float32, ld, blocks int, e *amxExtremes)

	transpose func(panel []uint16) // turns a panel packed by along into one packed by across, or back
	tile      func(t *amxTile)
}

// amxTile holds the arguments of a function that computes 32 columns of C: rows of op(A)·op(B) in blocks of 32×32, one
// below the other. The assembly uses the offsets of the fields.
type amxTile struct {
	a      []uint16  // panels of A, packed by along, one for each block
	b      []uint16  // a panel of B, packed by across
	c      []float32 // rows×cols
	sums   []float32 // 32×32 sums of products, for each block or for one block
	ldc    int       // distance between rows of C
	terms  int       // terms of the panels, divided by 32
	rows   int       // at least 1; the last block may have fewer than 32
	cols   int       // 1 to 32
	next   int       // distance in bytes between the sums of two blocks, or 0 if all use the same memory
	begun  int       // 1 if the sums go on from those in memory, and 0 if they begin at zero
	update int       // 1 for C = beta·C + alpha·sums, and 0 to leave the sums in memory
	keep   int       // 0 if C must not be read, otherwise 1
	alpha  float32
	beta   float32
}

// amxPays reports whether a product of three pieces should use the matrix unit: if its time on one core is at least a
// quarter less than with multiply-adds, and it has at least 2²⁴ multiplications. Smaller products gain on one core, but
// on several cores, starting and ending takes as long as the gain. The choice can't depend on the number of cores,
// because the bits differ. The README has the measurements. In units of a block of 32×32 with multiply-adds, a block
// takes 1/2 and packing a panel 3/4. The errors don't matter for this choice: they are smaller than with multiply-adds
// from 2 terms on, three times for 64 terms and five times for 1,024 (relative Frobenius error of normal numbers).
func amxPays(m, n, k int) bool {
	down, across, terms := parts(m, amxSide), parts(n, amxSide), roundUp(k, bfloat16Terms)
	work := int64(m) * int64(n) * int64(k)
	return k >= 64 && work >= 1<<24 && 16*work > 5*amxSide*amxSide*int64(terms)*int64(2*down*across+3*(down+across))
}

// amxPaysBFloat16 is like amxPays for products of bfloat16, where only packing a few rows or columns costs too much.
func amxPaysBFloat16(m, n, k int) bool {
	return min(m, n) >= 16 && int64(m)*int64(n)*int64(k) >= gemmTaskWork
}
