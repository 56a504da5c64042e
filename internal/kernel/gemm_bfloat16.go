package kernel

import "sync"

// GemmBFloat16 computes C = alpha·op(A)·op(B) + beta·C like [Gemm], but rounds the elements of A and B to bfloat16
// first. A bfloat16 has 8 significant bits and the range of a float32. Sums and C have float32.
//
// An element of C is computed as Intel's instruction TDPBF16PS does. Its sum begins at 0. Each group of 32 terms, with
// zeros after the last term, is added in two sums, one over the even terms and one over the odd ones, whose sum is
// added to the element's sum. Results below the smallest normal float32 become 0. At the end, the element is set to
// alpha·sum + beta·c, with each operation rounded to float32.
//
// So the bits of an element depend on its row of op(A), its column of op(B), alpha, beta and c alone: they are the same
// for any number of cores, any blocks, and all instruction sets. Only the bits of NaN may differ.
//
// The elements of A and B become zeros if they are subnormal, and infinities if they are at least 2¹²⁸ − 2¹¹⁹.
//
// GemmBFloat16 panics if a dimension is negative, or a slice or a distance between rows is too short.
func GemmBFloat16(cores int, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int, finish *Finish[float32], kept *Kept) {
	w := take[bfloat16Work](&bfloat16Products)
	w.gemmProduct = gemmProduct[float32]{
		count: 1, transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha, beta: beta,
		a: a, b: b, c: c, lda: lda, ldb: ldb, ldc: ldc, finish: finish, weight: kept,
	}
	if w.hasTerms() && !amxGemm(cores, inUse.amx1, &w.gemmProduct) {
		w.set = inUse
		w.divide(workers(cores))
		parallelRun(cores, w.tasks(), w, w.work() >= gemmWakeWork)
	}
	*w = bfloat16Work{}
	bfloat16Products.Put(w)
}

var bfloat16Products, bfloat16Blocks sync.Pool

// bfloat16Work is a product and its division into tasks. A task computes one block of C.
type bfloat16Work struct {
	gemmProduct[float32]
	set              *instructionSet
	rowStep, colStep int // size of a block
}

// bfloat16Band is the number of rows of A that are packed at once, a multiple of each set's rows of a tile.
const bfloat16Band = 96

// divide chooses the blocks. If there is enough work, each worker gets at least two tasks.
func (w *bfloat16Work) divide(workers int) {
	rows, cols := w.set.bfloat16.rows, w.set.f32.tiles.cols
	step := func(n, limit, tile int) int { return roundUp(gemmEven(n, limit), tile) }
	w.rowStep, w.colStep = step(w.m, w.set.bfloat16.band, rows), step(w.n, w.set.bfloat16.slab, cols)
	if workers == 1 {
		return
	}
	for want := int(min(int64(2*workers), w.work()/gemmTaskWork)); w.tasks() < want; {
		switch {
		case w.colStep >= w.rowStep && w.colStep > cols:
			w.colStep = step(w.colStep, w.colStep/2, cols)
		case w.rowStep > rows:
			w.rowStep = step(w.rowStep, w.rowStep/2, rows)
		default:
			return
		}
	}
}

func (w *bfloat16Work) work() int64 { return int64(w.m) * int64(w.n) * int64(w.k) }

func (w *bfloat16Work) tasks() int {
	return parts(w.m, w.rowStep) * parts(w.n, w.colStep)
}

// bfloat16Scratch is the memory of one task.
type bfloat16Scratch struct {
	tile    bfloat16Tile
	a, b    []float32 // packed
	sums    []float32 // of the block, if they aren't C's elements
	partial []float32 // a tile that is partly outside of the block
}

// run computes one block.
func (w *bfloat16Work) run(task int) {
	s := take[bfloat16Scratch](&bfloat16Blocks)
	across := parts(w.n, w.colStep)
	i, j := task/across*w.rowStep, task%across*w.colStep
	rows, cols := min(w.rowStep, w.m-i), min(w.colStep, w.n-j)
	c := w.c[i*w.ldc+j:]
	if w.alpha == 1 && w.beta == 0 {
		w.sum(s, c, w.ldc, i, j, rows, cols)
	} else {
		s.sums = grown(s.sums, rows*cols)
		w.sum(s, s.sums, cols, i, j, rows, cols)
		for i := range rows {
			w.finish(c[i*w.ldc:][:cols], s.sums[i*cols:][:cols])
		}
	}
	w.finishBlock(w.set.f32, 0, i, i+rows, j, j+cols)
	s.tile = bfloat16Tile{}
	bfloat16Blocks.Put(s)
}

// finish sets c to alpha·sums + beta·c.
func (w *bfloat16Work) finish(c, sums []float32) {
	if w.alpha != 1 {
		w.set.f32.scale(sums, w.alpha)
	}
	switch w.beta {
	case 0:
		copy(c, sums)
		return
	case 1:
	default:
		w.set.f32.scale(c, w.beta)
	}
	w.set.f32.add(c, c, sums)
}

// sum sets sums to op(A)·op(B), for some rows and columns of the product that begin at (i, j).
func (w *bfloat16Work) sum(s *bfloat16Scratch, sums []float32, ld, i, j, rows, cols int) {
	b, width, t := &w.set.bfloat16, w.set.f32.tiles.cols, &s.tile
	for p := 0; p < w.k; p += b.depth {
		terms := min(b.depth, w.k-p)
		t.steps = parts(terms, bfloat16Terms)
		t.keep = min(p, 1)
		w.packB(s, p, j, cols, terms)
		for y := 0; y < rows; y += bfloat16Band {
			band := min(bfloat16Band, rows-y)
			w.packA(s, i+y, p, band, terms)
			for x := 0; x < cols; x += width {
				t.a, t.b, t.c, t.ldc = s.a, s.b[x*t.steps*bfloat16Terms:], sums[y*ld+x:], ld
				t.tiles = band / b.rows
				if x+width > cols {
					t.tiles = 0
				}
				whole := t.tiles * b.rows
				if whole > 0 {
					b.tile(t)
				}
				for z := whole; z < band; z += b.rows {
					w.part(s, z, sums[(y+z)*ld+x:], ld, band-z, cols-x)
				}
			}
		}
	}
}

// part computes a tile of which only some rows and columns belong to the block. It begins at the given row of A.
func (w *bfloat16Work) part(s *bfloat16Scratch, row int, sums []float32, ld, rows, cols int) {
	b, width, t := &w.set.bfloat16, w.set.f32.tiles.cols, &s.tile
	rows, cols = min(rows, b.rows), min(cols, width)
	s.partial = grown(s.partial, b.rows*width)
	t.a, t.c, t.ldc, t.tiles = s.a[row*t.rsA:], s.partial, width, 1
	for i := range rows {
		copy(s.partial[i*width:][:cols], sums[i*ld:])
	}
	b.tile(t)
	for i := range rows {
		copy(sums[i*ld:][:cols], s.partial[i*width:])
	}
}

// packA packs terms p, p+1, … of some rows of op(A), which begin at i: row by row or, if A is transposed, column by
// column. The distances make that rows or columns begin in different sets of the cache.
func (w *bfloat16Work) packA(s *bfloat16Scratch, i, p, rows, terms int) {
	t, height := &s.tile, w.set.bfloat16.rows
	lines, length, ld := roundUp(rows, height), t.steps*bfloat16Terms, t.steps*bfloat16Terms+16
	t.rsA, t.csA = ld, 1
	start, stored, some := i*w.lda+p, rows, terms
	if w.transA {
		lines, length, ld = length, lines, bfloat16Band+16
		t.rsA, t.csA = 1, ld
		start, stored, some = p*w.lda+i, terms, rows
	}
	s.a = grown(s.a, lines*ld)
	for x := range stored {
		line := s.a[x*ld:][:length]
		copy(line, w.a[start+x*w.lda:][:some])
		clear(line[some:])
	}
	clear(s.a[stored*ld:])
	w.set.bfloat16.round(s.a)
}

// packB packs terms p, p+1, … of some columns of op(B), which begin at j, in panels that are as wide as a tile.
func (w *bfloat16Work) packB(s *bfloat16Scratch, p, j, cols, terms int) {
	tiles, length := &w.set.f32.tiles, s.tile.steps*bfloat16Terms
	s.b = grown(s.b, roundUp(cols, tiles.cols)*length)
	for x := 0; x < cols; x += tiles.cols {
		panel, some := s.b[x*length:][:tiles.cols*length], min(tiles.cols, cols-x)
		if w.transB {
			tiles.transpose(panel[:terms*tiles.cols], w.b[(j+x)*w.ldb+p:], w.ldb, some, terms)
		} else {
			tiles.pack(panel[:terms*tiles.cols], w.b[p*w.ldb+j+x:], w.ldb, some, terms)
		}
		clear(panel[terms*tiles.cols:])
		w.set.bfloat16.round(panel)
	}
}
