package kernel

// gemmProduct holds the arguments of GemmBatch.
type gemmProduct[F Float] struct {
	count, m, n, k            int
	transA, transB            bool
	alpha, beta               F
	a, b, c                   []F
	lda, ldb, ldc             int
	strideA, strideB, strideC int
}

// gemmWork is a batch of products and its division into tasks. A task computes one block of C for one or several
// products. The division depends on the number of workers, but the result doesn't: the terms of an element of C are
// always added in the same order, in the same runs of depth terms.
type gemmWork[F Float] struct {
	gemmProduct[F]
	body    *body[F]
	rowStep int // rows per block of C
	colStep int // columns per block of C
	items   int // products per task
	depth   int // terms per run
}

const (
	gemmTaskWork  = 1 << 18 // least number of multiplications for which a separate task is worthwhile
	gemmWakeWork  = 1 << 21 // least number of multiplications for which waking a sleeping helper is worthwhile
	gemmLeastCols = 4       // tiles in a row for which reading or copying A costs little beside the products
	gemmRowCost   = 4       // cost of a multiplication whose operand must come from memory, as a multiple of other ones
)

// divide chooses the blocks. If there is enough work, each worker gets several tasks, so that no worker waits long for
// the others.
func (w *gemmWork[F]) divide(workers int) {
	b := &w.body.tiles
	w.items = 1
	w.depth = gemmEven(w.k, b.depth)
	w.rowStep = w.m
	w.colStep = (gemmEven(w.n, b.slab) + b.cols - 1) / b.cols * b.cols
	want := int(min(int64(2*workers), w.work()/gemmTaskWork))
	if workers == 1 || want <= 1 {
		w.items = w.count
		return
	}
	if w.count >= want {
		w.items = w.count / want
		return
	}
	for w.tasks() < want {
		switch {
		case w.colStep > gemmLeastCols*b.cols: // no part of B is packed twice, but each block reads all of A
			w.colStep = (w.colStep/2 + b.cols - 1) / b.cols * b.cols
		case w.rowStep >= 2*b.rows && (!w.transB || w.rowStep >= 256): // each block transposes B again
			w.rowStep = (w.rowStep + 1) / 2
		case w.colStep > b.cols:
			w.colStep = (w.colStep/2 + b.cols - 1) / b.cols * b.cols
		default:
			return
		}
	}
}

// work returns the number of multiplications, or the same cost for a row, which needs each element of B only once.
func (w *gemmWork[F]) work() int64 {
	work := int64(w.count) * int64(w.m) * int64(w.n) * int64(w.k)
	if w.isRow() {
		return work * gemmRowCost
	}
	return work
}

// gemmEven divides n into the fewest equal parts of at most limit, and returns their size.
func gemmEven(n, limit int) int {
	parts := (n + limit - 1) / limit
	return (n + parts - 1) / parts
}

// grid returns how many blocks C has down and across.
func (w *gemmWork[F]) grid() (down, across int) {
	return (w.m + w.rowStep - 1) / w.rowStep, (w.n + w.colStep - 1) / w.colStep
}

func (w *gemmWork[F]) tasks() int {
	down, across := w.grid()
	return (w.count + w.items - 1) / w.items * down * across
}

// run does one task.
func (w *gemmWork[F]) run(task int) {
	s := take[gemmScratch[F]](&w.body.blocks)
	down, across := w.grid()
	first := task / (down * across) * w.items
	i := task / across % down * w.rowStep
	j := task % across * w.colStep
	for item := first; item < min(first+w.items, w.count); item++ {
		if w.isRow() {
			w.row(item, j, min(j+w.colStep, w.n))
			continue
		}
		w.block(s, item, i, min(i+w.rowStep, w.m), j, min(j+w.colStep, w.n))
	}
	w.body.blocks.Put(s)
}

// gemmScratch is the memory of one task.
type gemmScratch[F Float] struct {
	tile gemmTile[F]
	a    []F // a copy of some rows of A
	b    []F // packed panels of B, each with the columns of a tile
}

// block computes rows i0 to i1 and columns j0 to j1 of one C.
func (w *gemmWork[F]) block(s *gemmScratch[F], item, i0, i1, j0, j1 int) {
	g, t := &w.body.tiles, &s.tile
	rsA, csA := w.lda, 1
	if w.transA {
		rsA, csA = 1, w.lda
	}
	a, b, c := w.a[item*w.strideA+i0*rsA:], w.b[item*w.strideB:], w.c[item*w.strideC+i0*w.ldc:]
	rows := i1 - i0
	band := gemmEven(rows, g.band)
	t.ldc = w.ldc
	t.alpha, t.beta, t.keep = w.alpha, w.beta, 1
	if w.beta == 0 {
		t.keep = 0
	}
	for p := 0; p < w.k; p += w.depth {
		t.k = min(w.depth, w.k-p)
		if p > 0 {
			t.keep, t.beta = 1, 1
		}
		for i := 0; i < rows; i += band {
			some := min(band, rows-i)
			left := a[i*rsA+p*csA:]
			t.rsA, t.csA = rsA, csA
			if w.copiesA(j1 - j0) {
				left = w.copyA(s, t, left, some)
			}
			for j := j0; j < j1; j += g.cols {
				t.cols = min(g.cols, j1-j)
				if w.packs(rows, t.cols) {
					t.b, t.rsB = s.panel(j-j0, t.k, band < rows, g.cols), g.cols
					if i == 0 {
						w.pack(t.b, b, p, j, t.cols, t.k)
					}
				} else {
					t.b, t.rsB = b[p*w.ldb+j:], w.ldb
				}
				g.column(t, left, c[i*w.ldc+j:], some)
			}
		}
	}
	t.a, t.b, t.c = nil, nil, nil
}

// copiesA reports whether to copy the rows of A for a pass over cols columns of B. A copy pays off in two cases: a tile
// reads more rows of A that begin in the same set of the first cache than the 8 that the set holds, or A is transposed
// and its columns span many pages.
func (w *gemmWork[F]) copiesA(cols int) bool {
	g := &w.body.tiles
	oneSet := w.lda%(1<<10) == 0 && (w.transA || g.rows > 8)
	return cols >= gemmLeastCols*g.cols && (oneSet || w.transA && w.lda >= 1<<13)
}

// copyA copies rows×t.k elements of A, in the order in which A is stored, and sets the distances in t to those of the
// copy.
func (w *gemmWork[F]) copyA(s *gemmScratch[F], t *gemmTile[F], a []F, rows int) []F {
	lines, length := rows, t.k
	if w.transA {
		lines, length = t.k, rows
	}
	ld := (length+15)/16*16 + 16 // successive lines begin in different sets of the cache
	if w.transA {
		t.csA = ld
	} else {
		t.rsA = ld
	}
	if need := lines * ld; len(s.a) < need {
		s.a = make([]F, need)
	}
	for i := range lines {
		copy(s.a[i*ld:][:length], a[i*w.lda:])
	}
	return s.a
}

// panel returns the memory for the packed columns from j on. If keep is false, all columns use the same memory.
func (s *gemmScratch[F]) panel(j, k int, keep bool, cols int) []F {
	from := 0
	if keep {
		from = j * k
	}
	if need := from + cols*k; len(s.b) < need {
		s.b = append(s.b, make([]F, need-len(s.b))...)
	}
	return s.b[from:]
}

// packs reports whether to pack the columns of B. There are two reasons: the tiles need it, or there are many rows of C
// and B's columns span so many pages of memory that packing saves time.
func (w *gemmWork[F]) packs(rows, cols int) bool {
	return w.transB || cols%w.body.tiles.lanes != 0 || rows >= 128 && w.depth*w.ldb >= 1<<17
}

// pack packs k rows of cols columns of op(B), from row p and column j on.
func (w *gemmWork[F]) pack(dst, b []F, p, j, cols, k int) {
	if w.transB {
		w.body.tiles.transpose(dst, b[j*w.ldb+p:], w.ldb, cols, k)
	} else {
		w.body.tiles.pack(dst, b[p*w.ldb+j:], w.ldb, cols, k)
	}
}

// isRow reports whether C is one row of dot products with the stored rows of B, such as x·Wᵀ for one token. B is then
// read only once, so packing B would cost more than the products.
func (w *gemmWork[F]) isRow() bool { return w.m == 1 && w.transB && !w.transA }

// row computes columns j0 to j1 of a C with one row. It reads B in two places at once, because the memory delivers more
// to two streams than to one.
func (w *gemmWork[F]) row(item, j0, j1 int) {
	a, b, c := w.a[item*w.strideA:][:w.k], w.b[item*w.strideB:], w.c[item*w.strideC:]
	set := func(j int, x F) {
		if x *= w.alpha; w.beta != 0 {
			x += w.beta * c[j]
		}
		c[j] = x
	}
	half := (j1 - j0) / 2
	for j := j0; j < j0+half; j++ {
		x, y := w.body.dots(a, b[j*w.ldb:][:w.k], b[(j+half)*w.ldb:][:w.k])
		set(j, x)
		set(j+half, y)
	}
	if j := j1 - 1; j >= j0+2*half {
		set(j, w.body.dot(a, b[j*w.ldb:][:w.k]))
	}
}
