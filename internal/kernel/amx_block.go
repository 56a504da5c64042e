package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// amxBlock is one block of C for one stage, and memory to compute it.
type amxBlock struct {
	*amxWork
	a, b, c                      []float32 // of one product
	item, i0, i1, j0, j1, p0, p1 int       // rows, columns and terms
	turn                         int       // panel of B to begin with
	shared                       *amxPanels
	round, firstCol, firstTerm   int // of the shared panels

	amxPadding
	t      amxTile
	packed []uint16   // panels of A
	ranges []amxRange // of the panels of A
	rows   []amxLines // of the panels of A
	sums   []float32
	fma    []float32
}

// begin chooses the block and its panels of B. Blocks that begin at the same time begin with different panels.
func (s *amxBlock) begin(w *amxWork, stage, block int) {
	deep, across, down := parts(w.k, w.depth), parts(w.n, w.width), parts(w.m, w.band)
	s.amxWork = w
	s.item = stage / deep / across
	s.a, s.b, s.c = w.a[s.item*w.strideA:], w.b[s.item*w.strideB:], w.c[s.item*w.strideC:]
	s.firstCol, s.firstTerm = stage/deep%across*w.width, stage%deep*w.depth
	s.shared, s.round = &w.panels[stage%2], stage
	s.i0, s.j0, s.p0 = block%down*w.band, s.firstCol+block/down*w.cols, s.firstTerm
	s.i1, s.j1, s.p1 = min(s.i0+w.band, w.m), min(s.j0+w.cols, s.firstCol+w.width, w.n), min(s.p0+w.depth, w.k)
	s.turn = block % down % w.workers * parts(s.j1-s.j0, amxSide) / w.workers
}

// left returns A from row i and term p on.
func (s *amxBlock) left(i, p int) []float32 {
	if s.transA {
		return s.a[p*s.lda+i:]
	}
	return s.a[i*s.lda+p:]
}

// right returns B from term p and column j on.
func (s *amxBlock) right(p, j int) []float32 {
	if s.transB {
		return s.b[j*s.ldb+p:]
	}
	return s.b[p*s.ldb+j:]
}

// compute computes the block.
func (s *amxBlock) compute() {
	t := &s.t
	panels := parts(s.j1-s.j0, amxSide)
	t.ldc, t.alpha = s.ldc, s.alpha
	size := 0 // of the sums of a column of blocks
	if t.next = 0; s.unit.pieces == 1 {
		t.next, size = 4*amxSide*amxSide, roundUp(s.i1-s.i0, amxSide)*amxSide
	}
	s.sums = aligned(s.sums, max(size*panels, amxSide*amxSide))
	sums := s.sums
	if s.keeps {
		size = roundUp(s.m, amxSide) * amxSide
		sums = s.kept[s.j0%s.width/amxSide*size+s.i0*amxSide:]
	}
	for p := s.p0; p < s.p1; p += amxRun {
		terms := min(amxRun, s.k-p)
		s.packRows(p, terms)
		t.terms = parts(terms, bfloat16Terms)
		t.keep, t.beta = 1, s.beta
		if p > 0 && s.unit.pieces > 1 {
			t.beta = 1
		} else if s.beta == 0 {
			t.keep = 0
		}
		t.begun, t.update = 0, 1
		if s.unit.pieces == 1 {
			t.begun, t.update = min(1, p), 0
			if p+terms == s.k {
				t.update = 1
			}
		}
		for x := range panels {
			x = (x + s.turn) % panels
			t.sums = sums[x*size:]
			s.column(s.j0+x*amxSide, p, terms)
		}
	}
	if s.p1 == s.k {
		s.finishBlock(s.body, s.item, s.i0, s.i1, s.j0, s.j1)
	}
}

// packRows packs the rows of op(A) for a run from term p on.
func (s *amxBlock) packRows(p, terms int) {
	size := roundUp(terms, bfloat16Terms) * amxSide * s.unit.pieces // of a panel
	s.packed = aligned(s.packed, parts(s.i1-s.i0, amxSide)*size)
	s.ranges, s.rows = s.ranges[:0], s.rows[:0]
	for i := s.i0; i < s.i1; i += amxSide {
		dst, lines := s.packed[(i-s.i0)/amxSide*size:], min(amxSide, s.i1-i)
		s.ranges = append(s.ranges, s.unit.pack(&s.amxPadding, dst, s.left(i, p), s.lda, !s.transA, false, lines, terms))
		s.rows = append(s.rows, amxLines{})
	}
}

// panel returns the panel of op(B) from column j on, for a run from term p on, and its range.
func (s *amxBlock) panel(j, p, terms int) ([]uint16, *amxRange) {
	shared, col, term, round := s.shared, j-s.firstCol, p-s.firstTerm, s.round
	if s.own != nil {
		shared, col, term, round = s.own, j, p, 0
	}
	panel, r, packed := shared.claim(col, term, round)
	if packed != nil {
		defer packed.Add(1) // even if packing panics: others mustn't wait forever
		*r = s.unit.pack(&s.amxPadding, panel, s.right(p, j), s.ldb, s.transB, true, min(amxSide, s.n-j), terms)
	}
	return panel, r
}

// column computes 32 columns of the block: the blocks of 32 rows whose sums are safe together, and others one by one.
func (s *amxBlock) column(j, p, terms int) {
	t := &s.t
	b, r := s.panel(j, p, terms)
	t.b, t.cols = b, min(amxSide, s.j1-j)
	var cols amxLines
	size := t.terms * bfloat16Terms * amxSide * s.unit.pieces
	for i := s.i0; i < s.i1; {
		end, first := i, (i-s.i0)/amxSide
		for end < s.i1 && (s.unit.pieces == 1 || s.ranges[(end-s.i0)/amxSide].plain(r)) {
			end += amxSide
		}
		t.a, t.c, t.rows = s.packed[first*size:], s.c[i*s.ldc+j:], min(end, s.i1)-i
		if t.rows > 0 {
			s.unit.tile(t)
			i = end
			continue
		}
		t.rows = min(amxSide, s.i1-i)
		s.careful(&s.rows[first], &cols, i, j, p, terms)
		i += amxSide
	}
}

// careful computes one block for a run from term p on, in which some numbers are too large or too small for the matrix
// unit. The elements with such numbers use multiply-adds, unless their sums show that nothing was lost. Others don't,
// so the bits of an element depend only on its row of op(A) and its column of op(B).
func (s *amxBlock) careful(left, right *amxLines, i, j, p, terms int) {
	t := &s.t
	t.update = 0
	s.unit.tile(t)
	t.update = 1
	rows := left.read(s.left(i, p), s.lda, !s.transA, t.rows, terms)
	cols := right.read(s.right(p, j), s.ldb, s.transB, t.cols, terms)
	var fma []float32 // the sums by multiply-adds
	for x := range t.rows {
		for y := range t.cols {
			sum := &t.sums[x*amxSide+y]
			if rows[x].safe(&cols[y], *sum) {
				continue
			}
			if fma == nil {
				fma = s.multiplyAdd(i, j, p, terms)
			}
			*sum = fma[x*amxSide+y]
			if c := t.c[x*t.ldc+y]; p > 0 && math.IsInf(float64(c), 0) && math.IsInf(float64(*sum), 0) && max(rows[x].most, cols[y].most) < portable.InfinityBits {
				*sum = s.alpha * c // the sum has overflowed before: like multiply-adds, keep its sign
			}
		}
	}
	amxUpdate(t, t.sums, t.c, t.rows)
}

// multiplyAdd returns the sums of a block for a run, computed with multiply-adds.
func (s *amxBlock) multiplyAdd(i, j, p, terms int) []float32 {
	s.fma = grown(s.fma, amxSide*amxSide)
	f := gemmWork[float32]{gemmProduct: s.gemmProduct, body: s.body}
	f.count, f.m, f.n, f.k, f.alpha, f.beta, f.finish = 1, s.t.rows, s.t.cols, terms, 1, 0, nil
	f.a, f.b, f.c, f.ldc = s.left(i, p), s.right(p, j), s.fma, amxSide
	f.divide(1)
	blocks := take[gemmScratch[float32]](&s.body.blocks)
	f.block(blocks, 0, 0, f.m, 0, f.n)
	s.body.blocks.Put(blocks)
	return s.fma
}
