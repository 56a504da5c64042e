package kernel

// gemmTile is the work of tiles that follow one another downwards: C = alpha·A·B + beta·C for an A of tiles·rows×k, a B
// of k×cols and a C of tiles·rows×cols. The assembly knows the fields by their offsets.
type gemmTile[F Float] struct {
	a, b, c       []F
	rsA, csA      int // from a row of A to the next, from a column to the next
	rsB, ldc      int // from a row of B, of C, to the next; columns are adjacent
	rows, cols, k int // of one tile; each at least 1
	tiles         int // at least 1
	keep          int // 0: C is written without being read
	alpha, beta   F
}
