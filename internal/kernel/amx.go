package kernel

import (
	"math"
	"unsafe"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// amxGemm computes products of float32 if there is a matrix unit and they are large enough for it. Otherwise it returns
// false.
func amxGemm[F Float](cores int, unit *amxUnit, g *gemmProduct[F]) bool {
	if !portable.Is32[F]() || unit == nil || !unit.pays(g.m, g.n, g.k) {
		return false
	}
	amxProduct(cores, unit, (*gemmProduct[float32])(unsafe.Pointer(g)))
	return true
}

// amxProduct computes g.count products.
func amxProduct(cores int, unit *amxUnit, g *gemmProduct[float32]) {
	body := bodyOf[float32]()
	w := take[amxWork](&body.matrices)
	w.body, w.unit = body, unit
	depth, cols := amxRun, amxCols
	w.keeps = false
	if unit.pieces == 1 { // the sums must go on to the last term: the more columns, the less often A is packed
		packed, kept := 4*amxRun*amxCols/g.k, amxSums/g.m
		if w.keeps = packed < cols && kept > packed; w.keeps {
			packed = kept
		} else {
			depth = g.k
		}
		cols = min(cols, max(amxSide, packed/amxSide*amxSide))
	}
	wake := int64(g.m)*int64(g.n)*int64(g.k) >= gemmWakeWork
	for item := range g.count {
		w.gemmProduct = *g
		w.a, w.b, w.c = g.a[item*g.strideA:], g.b[item*g.strideB:], g.c[item*g.strideC:]
		for w.j0 = 0; w.j0 < g.n; w.j0 = w.j1 {
			w.j1 = min(w.j0+cols, g.n)
			for w.p0 = 0; w.p0 < g.k; w.p0 = w.p1 {
				w.p1 = min(w.p0+depth, g.k)
				w.divide(workers(cores))
				parallelRun(cores, w.packTasks(), (*amxPacking)(w), wake)
				parallelRun(cores, w.tasks(), w, wake)
			}
		}
	}
	w.gemmProduct, w.body, w.unit = gemmProduct[float32]{}, nil, nil
	body.matrices.Put(w)
}

// amxWork is one product. All cores share the packed panels of B. Each task packs its rows of A.
type amxWork struct {
	gemmProduct[float32]
	body           *body[float32]
	unit           *amxUnit
	j0, j1, p0, p1 int        // columns and terms whose panels of B are packed
	panels         []uint16   // of B: all runs of one panel, then those of the next
	ranges         []amxRange // of the panels of B
	band, cols     int        // rows and columns of C per task
	keeps          bool       // whether sums are kept for all rows, because B is packed for only some terms at once
	sums           []float32  // blocks of 32×32, column of blocks by column of blocks; used if keeps is set
}

// divide chooses the blocks of C: at least two per worker, if there are enough rows and columns. Each block packs its
// rows of A, so columns are divided only when the bands of rows are low. Lower bands read B more often.
func (w *amxWork) divide(workers int) {
	w.cols, w.band = roundUp(w.j1-w.j0, amxSide), min(amxBand, roundUp(w.m, amxSide))
	for workers > 1 && w.tasks() < 2*workers {
		switch {
		case w.band > amxBand/2:
			w.band = roundUp(w.band/2, amxSide)
		case w.cols > amxBand/2:
			w.cols = roundUp(w.cols/2, amxSide)
		case w.band > amxSide:
			w.band = roundUp(w.band/2, amxSide)
		default:
			workers = 1
		}
	}
	w.panels = aligned(w.panels, roundUp(w.j1-w.j0, amxSide)*roundUp(w.p1-w.p0, bfloat16Terms)*w.unit.pieces)
	if w.keeps {
		w.sums = aligned(w.sums, roundUp(w.m, amxSide)*roundUp(w.j1-w.j0, amxSide))
	}
	w.ranges = append(w.ranges[:0], make([]amxRange, parts(w.j1-w.j0, amxSide)*parts(w.p1-w.p0, amxRun))...)
}

// tasks returns the number of blocks that divide made.
func (w *amxWork) tasks() int { return parts(w.m, w.band) * parts(w.j1-w.j0, w.cols) }

// panel returns a panel of B and its range.
func (w *amxWork) panel(j, p int) ([]uint16, *amxRange) {
	depth, q := w.p1-w.p0, (j-w.j0)/amxSide
	before := q*roundUp(depth, bfloat16Terms) + p - w.p0
	return w.panels[before*amxSide*w.unit.pieces:], &w.ranges[q*parts(depth, amxRun)+(p-w.p0)/amxRun]
}

// left returns A from row i and term p on.
func (w *amxWork) left(i, p int) []float32 {
	if w.transA {
		return w.a[p*w.lda+i:]
	}
	return w.a[i*w.lda+p:]
}

// right returns B from term p and column j on.
func (w *amxWork) right(p, j int) []float32 {
	if w.transB {
		return w.b[j*w.ldb+p:]
	}
	return w.b[p*w.ldb+j:]
}

// amxPacking is an amxWork that packs B. Each task packs up to four panels.
type amxPacking amxWork

func (w *amxWork) packTasks() int { return parts(w.j1-w.j0, 4*amxSide) }

func (b *amxPacking) run(task int) {
	w := (*amxWork)(b)
	s := take[amxScratch](&w.body.matrix)
	for p := w.p0; p < w.p1; p += amxRun {
		for j := w.j0 + 4*amxSide*task; j < min(w.j0+4*amxSide*(task+1), w.j1); j += amxSide {
			dst, r := w.panel(j, p)
			lines, terms := min(amxSide, w.j1-j), min(amxRun, w.p1-p)
			*r = w.unit.pack(&s.amxPadding, dst, w.right(p, j), w.ldb, w.transB, true, lines, terms)
		}
	}
	w.body.matrix.Put(s)
}

// amxScratch is the memory of one task.
type amxScratch struct {
	amxPadding
	t      amxTile
	panels []uint16   // of A
	ranges []amxRange // of the panels of A
	rows   []amxLines // of the panels of A
	sums   []float32
	fma    []float32
}

// run computes one block of C, for the terms whose part of B is packed.
func (w *amxWork) run(task int) {
	s := take[amxScratch](&w.body.matrix)
	t := &s.t
	down := parts(w.m, w.band)
	i0, j0 := task%down*w.band, w.j0+task/down*w.cols
	i1, j1 := min(i0+w.band, w.m), min(j0+w.cols, w.j1)
	t.ldc, t.alpha = w.ldc, w.alpha
	size := 0 // of the sums of a column of blocks
	if t.next = 0; w.unit.pieces == 1 {
		t.next, size = 4*amxSide*amxSide, roundUp(i1-i0, amxSide)*amxSide
	}
	s.sums = aligned(s.sums, max(size*parts(j1-j0, amxSide), amxSide*amxSide))
	sums := s.sums
	if w.keeps {
		size = roundUp(w.m, amxSide) * amxSide
		sums = w.sums[(j0-w.j0)/amxSide*size+i0*amxSide:]
	}
	for p := w.p0; p < w.p1; p += amxRun {
		terms := min(amxRun, w.p1-p)
		w.packRows(s, i0, i1, p, terms)
		t.terms = parts(terms, bfloat16Terms)
		t.keep, t.beta = 1, w.beta
		if p > 0 && w.unit.pieces > 1 {
			t.beta = 1
		} else if w.beta == 0 {
			t.keep = 0
		}
		t.begun, t.update = 0, 1
		if w.unit.pieces == 1 {
			t.begun, t.update = min(1, p), 0
			if p+terms == w.k {
				t.update = 1
			}
		}
		for j := j0; j < j1; j += amxSide {
			t.cols = min(amxSide, j1-j)
			t.sums = sums[(j-j0)/amxSide*size:]
			w.column(s, i0, i1, j, p, terms)
		}
	}
	if w.p1 == w.k {
		w.finishBlock(w.body, 0, i0, i1, j0, j1)
	}
	t.b, t.c, t.sums = nil, nil, nil
	w.body.matrix.Put(s)
}

// packRows packs rows i0 to i1 of op(A) for a run from term p on.
func (w *amxWork) packRows(s *amxScratch, i0, i1, p, terms int) {
	size := roundUp(terms, bfloat16Terms) * amxSide * w.unit.pieces // of a panel
	s.panels = aligned(s.panels, parts(i1-i0, amxSide)*size)
	s.ranges, s.rows = s.ranges[:0], s.rows[:0]
	for i := i0; i < i1; i += amxSide {
		dst, lines := s.panels[(i-i0)/amxSide*size:], min(amxSide, i1-i)
		s.ranges = append(s.ranges, w.unit.pack(&s.amxPadding, dst, w.left(i, p), w.lda, !w.transA, false, lines, terms))
		s.rows = append(s.rows, amxLines{})
	}
}

// column computes 32 columns of rows i0 to i1: the blocks whose sums are safe together, and others one by one.
func (w *amxWork) column(s *amxScratch, i0, i1, j, p, terms int) {
	t := &s.t
	b, r := w.panel(j, p)
	var cols amxLines
	size := t.terms * bfloat16Terms * amxSide * w.unit.pieces
	for i := i0; i < i1; {
		end, first := i, (i-i0)/amxSide
		for end < i1 && (w.unit.pieces == 1 || s.ranges[(end-i0)/amxSide].plain(r)) {
			end += amxSide
		}
		t.a, t.b, t.c, t.rows = s.panels[first*size:], b, w.c[i*w.ldc+j:], min(end, i1)-i
		if t.rows > 0 {
			w.unit.tile(t)
			i = end
			continue
		}
		t.rows = min(amxSide, i1-i)
		w.careful(s, &s.rows[first], &cols, i, j, p, terms)
		i += amxSide
	}
}

// careful computes one block for a run from term p on, in which some numbers are too large or too small for the matrix
// unit. The elements with such numbers use multiply-adds, unless their sums show that nothing was lost. Others don't,
// so the bits of an element depend only on its row of op(A) and its column of op(B).
func (w *amxWork) careful(s *amxScratch, left, right *amxLines, i, j, p, terms int) {
	t := &s.t
	t.update = 0
	w.unit.tile(t)
	t.update = 1
	rows := left.read(w.left(i, p), w.lda, !w.transA, t.rows, terms)
	cols := right.read(w.right(p, j), w.ldb, w.transB, t.cols, terms)
	var fma []float32 // the sums by multiply-adds
	for x := range t.rows {
		for y := range t.cols {
			sum := &t.sums[x*amxSide+y]
			if rows[x].safe(&cols[y], *sum) {
				continue
			}
			if fma == nil {
				fma = w.multiplyAdd(s, i, j, p, terms)
			}
			*sum = fma[x*amxSide+y]
			if c := t.c[x*t.ldc+y]; p > 0 && math.IsInf(float64(c), 0) && math.IsInf(float64(*sum), 0) && max(rows[x].most, cols[y].most) < portable.InfinityBits {
				*sum = w.alpha * c // the sum has overflowed before: like multiply-adds, keep its sign
			}
		}
	}
	amxUpdate(t, t.sums, t.c, t.rows)
}

// multiplyAdd returns the sums of a block for a run, computed with multiply-adds.
func (w *amxWork) multiplyAdd(s *amxScratch, i, j, p, terms int) []float32 {
	s.fma = grown(s.fma, amxSide*amxSide)
	f := gemmWork[float32]{gemmProduct: w.gemmProduct, body: w.body}
	f.count, f.m, f.n, f.k, f.alpha, f.beta, f.finish = 1, s.t.rows, s.t.cols, terms, 1, 0, nil
	f.a, f.b, f.c, f.ldc = w.left(i, p), w.right(p, j), s.fma, amxSide
	f.divide(1)
	blocks := take[gemmScratch[float32]](&w.body.blocks)
	f.block(blocks, 0, 0, f.m, 0, f.n)
	w.body.blocks.Put(blocks)
	return s.fma
}
