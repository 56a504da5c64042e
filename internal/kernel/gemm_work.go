package kernel

import "sync"

// gemmProduct is the arguments of GemmBatch.
type gemmProduct[F Float] struct {
	count, m, n, k            int
	transA, transB            bool
	alpha, beta               F
	a, b, c                   []F
	lda, ldb, ldc             int
	strideA, strideB, strideC int
}

// gemmWork is a product and its division into tasks. A task is either some products of a batch, whole, or one block of
// C of one product. However it is divided, an element of C is the sum over k of its terms in turn, cut into the same
// runs of depth terms: the division can follow the number of workers and doesn't change a bit.
type gemmWork[F Float] struct {
	gemmProduct[F]
	body    *gemmBody[F]
	rowStep int // rows of a block of C
	colStep int // columns of a block of C
	items   int // products a task, when the blocks are whole products
	depth   int // terms of a run
}

// divide chooses the blocks.
func (w *gemmWork[F]) divide(workers int) {
	b := w.body
	w.items = 1
	w.depth = gemmEven(w.k, b.depth)
	w.rowStep = gemmEven(w.m, b.blockRows)
	w.colStep = (gemmEven(w.n, b.blockCols) + b.cols - 1) / b.cols * b.cols
	if workers == 1 {
		return
	}
	work := w.count * w.m * w.n * w.k
	want := min(4*workers, work/gemmTaskWork)
	if want <= 1 {
		w.items = w.count
		return
	}
	if w.count >= want {
		w.items = w.count / want
		return
	}
	for w.tasks() < want {
		switch {
		case w.colStep > b.cols: // costs nothing: no part of B is packed twice
			w.colStep = (w.colStep/2 + b.cols - 1) / b.cols * b.cols
		case w.rowStep >= 2*b.rows:
			w.rowStep = (w.rowStep + 1) / 2
		default:
			return
		}
	}
}

// gemmTaskWork is the fewest multiplications worth a task of their own.
var gemmTaskWork = 1 << 18

// gemmWakeWork is the fewest multiplications worth waking a helper.
var gemmWakeWork = 1 << 21

// gemmEven returns the size of the parts, as even as can be, of n in parts of at most limit.
func gemmEven(n, limit int) int {
	parts := (n + limit - 1) / limit
	return (n + parts - 1) / parts
}

// grid returns the number of blocks in a column and in a row of blocks.
func (w *gemmWork[F]) grid() (down, across int) {
	return (w.m + w.rowStep - 1) / w.rowStep, (w.n + w.colStep - 1) / w.colStep
}

func (w *gemmWork[F]) tasks() int {
	down, across := w.grid()
	return (w.count + w.items - 1) / w.items * down * across
}

// run does one task.
func (w *gemmWork[F]) run(task int) {
	s := w.body.scratch.Get().(*gemmScratch[F])
	down, across := w.grid()
	first := task / (down * across) * w.items
	i := task / across % down * w.rowStep
	j := task % across * w.colStep
	for item := first; item < min(first+w.items, w.count); item++ {
		w.block(s, item, i, min(i+w.rowStep, w.m), j, min(j+w.colStep, w.n))
	}
	w.body.scratch.Put(s)
}

// gemmScratch is what a task needs of its own.
type gemmScratch[F Float] struct {
	tile gemmTile[F]
	b    []F // a panel of B: a tile's columns, packed
}

// block computes rows i0 to i1 and columns j0 to j1 of one C.
func (w *gemmWork[F]) block(s *gemmScratch[F], item, i0, i1, j0, j1 int) {
	body, t := w.body, &s.tile
	a, b, c := w.a[item*w.strideA:], w.b[item*w.strideB:], w.c[item*w.strideC:]
	rsA, csA := w.lda, 1
	if w.transA {
		rsA, csA = 1, w.lda
	}
	a = a[i0*rsA:]
	c = c[i0*w.ldc:]
	rows := i1 - i0
	tiles := (rows + body.rows - 1) / body.rows
	packB := w.packsB(rows)
	t.rsA, t.csA, t.ldc = rsA, csA, w.ldc
	t.alpha, t.beta, t.keep = w.alpha, w.beta, 1
	if w.beta == 0 {
		t.keep = 0
	}
	for p := 0; p < w.k; p += w.depth {
		t.k = min(w.depth, w.k-p)
		if p > 0 {
			t.keep, t.beta = 1, 1
		}
		for j := j0; j < j1; j += body.cols {
			t.cols = min(body.cols, j1-j)
			switch {
			case w.transB:
				t.b, t.rsB = s.b, body.cols
				body.packTransposed(s.b, b[j*w.ldb+p:], w.ldb, t.cols, t.k)
			case packB || t.cols%body.lanes != 0:
				t.b, t.rsB = s.b, body.cols
				body.pack(s.b, b[p*w.ldb+j:], w.ldb, t.cols, t.k)
			default:
				t.b, t.rsB = b[p*w.ldb+j:], w.ldb
			}
			i := 0
			for q := range tiles {
				next := (q + 1) * rows / tiles
				t.rows = next - i
				t.a = a[i*rsA+p*csA:]
				t.c = c[i*w.ldc+j:]
				body.tile(t)
				i = next
			}
		}
	}
	t.a, t.b, t.c = nil, nil, nil
}

var gemmForcePackB = -1

// packsB tells whether a block's part of B is copied though it needn't be.
func (w *gemmWork[F]) packsB(rows int) bool {
	if gemmForcePackB >= 0 {
		return gemmForcePackB == 1
	}
	return rows >= 128 && w.depth*w.ldb >= 1<<17
}

var gemmPool32, gemmPool64 = gemmPool(&gemmBody32), gemmPool(&gemmBody64)

func gemmPool[F Float](body **gemmBody[F]) *sync.Pool {
	return &sync.Pool{New: func() any { return new(gemmWork[F]) }}
}

func gemmGet[F Float]() *gemmWork[F] {
	var w any
	switch any(F(0)).(type) {
	case float32:
		w = gemmPool32.Get()
		w.(*gemmWork[float32]).body = gemmBody32
	default:
		w = gemmPool64.Get()
		w.(*gemmWork[float64]).body = gemmBody64
	}
	return w.(*gemmWork[F])
}

func gemmPut[F Float](w *gemmWork[F]) {
	w.gemmProduct = gemmProduct[F]{}
	switch any(F(0)).(type) {
	case float32:
		gemmPool32.Put(w)
	default:
		gemmPool64.Put(w)
	}
}
