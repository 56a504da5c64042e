package kernel

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

	turned gemmProduct[F] // the product whose transpose this is; its count is 0 if there is none
}

// divide chooses the blocks. If there is enough work, each worker gets several tasks, so that no worker waits long for
// the others.
func (w *gemmWork[F]) divide(workers int) {
	slab := w.body.tiles.slab
	w.items = 1
	w.depth = gemmEven(w.k, w.body.tiles.depth)
	slabs := parts(w.n, slab)
	w.split(1, slabs)
	want := int(min(int64(2*workers), w.work()/gemmTaskWork))
	if workers == 1 || want <= 1 {
		w.items = w.count
		return
	}
	if w.count >= want {
		w.items = w.count / want
		return
	}
	want = parts(want, w.count)
	best := *w
	for across := slabs; across <= max(slabs, want); across++ {
		w.split(parts(want, across), across)
		if across == slabs || w.cost(workers) < best.cost(workers) {
			best = *w
		}
	}
	*w = best
}

// split divides C into the given numbers of blocks or fewer. A block's columns fill its tiles.
func (w *gemmWork[F]) split(down, across int) {
	cols := w.body.tiles.cols
	w.rowStep = parts(w.m, down)
	w.colStep = roundUp(parts(w.n, across), cols)
}

// cost estimates the time of a division, without the factor k: a multiplication costs 1. Each block packs its columns
// of B, and reads its rows of A from memory or packs them.
func (w *gemmWork[F]) cost(workers int) int64 {
	packA, packB := 4, 10
	if w.transA {
		packA = 14
	}
	if w.transB {
		packB = 20
	}
	rounds := parts(w.tasks(), workers)
	return int64(rounds) * (int64(w.rowStep)*int64(w.colStep) + int64(packA*w.rowStep+packB*w.colStep))
}

// work returns the number of multiplications, or the same cost for a row, which needs each element of B only once.
func (w *gemmWork[F]) work() int64 {
	work := int64(w.count) * int64(w.m) * int64(w.n) * int64(w.k)
	if w.isRow() {
		return work * gemmRowCost
	}
	return work
}

// grid returns how many blocks C has down and across.
func (w *gemmWork[F]) grid() (down, across int) {
	return parts(w.m, w.rowStep), parts(w.n, w.colStep)
}

func (w *gemmWork[F]) tasks() int {
	down, across := w.grid()
	return parts(w.count, w.items) * down * across
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
			w.finishBlock(w.body, item, 0, 1, j, min(j+w.colStep, w.n))
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
			slivers := false
			if w.copiesA(j1 - j0) {
				left, slivers = w.copyA(s, t, left, some), w.transA
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
				right := j + g.cols
				switch {
				case g.ahead && i == 0 && w.transB && right < j1:
					g.oneByOne(t, left, c[i*w.ldc+j:], some, slivers, b[right*w.ldb+p:(j1-1)*w.ldb+p+1], w.ldb)
				case slivers:
					g.oneByOne(t, left, c[i*w.ldc+j:], some, true, nil, 0)
				default:
					g.column(t, left, c[i*w.ldc+j:], some)
				}
			}
			if p+t.k == w.k {
				if w.turned.count > 0 {
					w.turnBack(i0+i, i0+i+some, j0, j1)
				} else {
					w.finishBlock(w.body, item, i0+i, i0+i+some, j0, j1)
				}
			}
		}
	}
	t.a, t.b, t.c, t.ahead = nil, nil, nil, nil
}

// copiesA reports whether to copy the rows of A for a pass over cols columns of B. A copy pays off in two cases: a tile
// reads more rows of A that begin in the same set of the first cache than the set holds, or A is transposed, so that a
// tile reads a part of each of many lines.
func (w *gemmWork[F]) copiesA(cols int) bool {
	g := &w.body.tiles
	if w.transA {
		return g.packRows != nil && cols*w.lda >= 1<<16
	}
	const least = 4 // tiles in a row for which copying rows of A costs little beside the products
	return cols >= least*g.cols && w.lda%(1<<10) == 0 && g.collides
}

// copyA copies rows×t.k elements of A, which starts at a. If A is transposed, the copy consists of slivers: see
// gemmTiles.packSlivers. Otherwise, copyA sets t.rsA to the distance between the rows of the copy.
func (w *gemmWork[F]) copyA(s *gemmScratch[F], t *gemmTile[F], a []F, rows int) []F {
	if w.transA {
		s.a = grown(s.a, w.body.tiles.sliversSize(rows, t.k))
		w.body.tiles.packSlivers(s.a, a, w.lda, rows, t.k)
		return s.a
	}
	t.rsA = roundUp(t.k, 16) + 16 // successive rows begin in different sets of the cache
	s.a = grown(s.a, rows*t.rsA)
	for i := range rows {
		copy(s.a[i*t.rsA:][:t.k], a[i*w.lda:])
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

// packs reports whether to pack the columns of B. There are two reasons: the tiles need it, or there are so many rows
// of C that packing saves time, because a panel's rows of B span many pages of memory.
func (w *gemmWork[F]) packs(rows, cols int) bool {
	g := &w.body.tiles
	return w.transB || cols%g.lanes != 0 || rows >= 64 && w.depth*w.ldb >= 1<<16
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
