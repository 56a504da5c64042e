package kernel

import (
	"sync/atomic"
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

// amxProduct computes g.count products in one parallel section.
func amxProduct(cores int, unit *amxUnit, g *gemmProduct[float32]) {
	body := bodyOf[float32]()
	w := take[amxWork](&body.matrices)
	w.gemmProduct, w.body, w.unit, w.workers = *g, body, unit, workers(cores)
	w.own = g.weight.of(unit, g)
	w.divide()
	wake := int64(g.count)*int64(g.m)*int64(g.n)*int64(g.k) >= gemmWakeWork
	parallelRun(cores, w.stages()*w.blocks(), w, wake)
	w.gemmProduct, w.body, w.unit, w.own = gemmProduct[float32]{}, nil, nil, nil
	body.matrices.Put(w)
}

// amxWork is a batch of products and its division into tasks. A stage multiplies all rows of a product's op(A) by a
// part of its op(B): some columns, and some or all terms. A task computes one block of C for one stage. It packs its
// rows of A, and the panels of B that no other task has packed yet. Cores wait for one another only if one is much
// slower: for a panel of B, for a block of C in the stage before, or for the memory of the panels of the stage before
// that. Tasks wait only for tasks with smaller numbers, which have begun earlier, so one of them can always go on.
type amxWork struct {
	gemmProduct[float32]
	body         *body[float32]
	unit         *amxUnit
	workers      int
	depth, width int             // terms and columns of B per stage
	band, cols   int             // rows and columns of C per task
	panels       [2]amxPanels    // of B, for even and odd stages
	own          *amxPanels      // of all of B, if it is kept: then panels isn't used
	done         []atomic.Uint32 // for each block, the number of stages for which it is done
	keeps        bool            // whether sums are kept for all rows, because B is packed for only some terms at once
	kept         []float32       // the sums: blocks of 32×32, column of blocks by column of blocks
}

// divide chooses the stages and blocks: four blocks per worker, if there are several. Each block packs its rows of A,
// so bands of rows are halved before columns are, and with several stages, columns are halved only for two blocks per
// worker. Lower bands read B more often, which costs little only if the second cache holds B.
func (w *amxWork) divide() {
	w.depth, w.width, w.keeps = amxRun, amxCols, false
	if w.unit.pieces == 1 { // the sums must go on to the last term: the more columns, the less often A is packed
		packed, kept := 4*amxRun*amxCols/w.k, amxSums/w.m
		if w.keeps = packed < amxCols && kept > packed; w.keeps {
			packed = kept
		} else {
			w.depth = w.k
		}
		w.width = min(amxCols, max(amxSide, packed/amxSide*amxSide))
	}
	w.depth, w.width = min(w.depth, w.k), roundUp(gemmEven(w.n, w.width), amxSide)
	w.cols, w.band = w.width, min(amxBand, roundUp(w.m, amxSide))
	want, least := 4*w.workers, amxBand/4
	if w.workers == 1 {
		want = 0
	}
	if 2*w.width*w.depth*w.unit.pieces <= amxFew {
		least = amxSide
	}
	for w.blocks() < want && w.band > least {
		w.band = roundUp(w.band/2, amxSide)
	}
	if w.stages() > 1 {
		want /= 2
	}
	for w.blocks() < want && w.cols > amxBand/2 {
		w.cols = roundUp(w.cols/2, amxSide)
	}
	if w.blocks() < want {
		w.band = amxSide
	}
	for i := range w.panels[:min(w.stages(), len(w.panels))] {
		if w.own == nil {
			w.panels[i].reserve(w.width, w.depth, w.unit.pieces)
		}
	}
	w.done = amxCounters(w.done, w.blocks())
	if w.keeps {
		w.kept = aligned(w.kept, roundUp(w.m, amxSide)*w.width)
	}
}

// stages returns the number of stages: for each product, all terms of its first columns, then of the next ones.
func (w *amxWork) stages() int { return w.count * parts(w.n, w.width) * parts(w.k, w.depth) }

// blocks returns the number of blocks of C, and so of tasks, per stage.
func (w *amxWork) blocks() int { return parts(w.m, w.band) * parts(w.width, w.cols) }

// run does one task.
func (w *amxWork) run(task int) {
	stage, block := task/w.blocks(), task%w.blocks()
	defer w.done[block].Store(uint32(stage + 1)) // even if the task panics: others mustn't wait forever
	for i := range w.done {
		amxAwait(&w.done[i], stage-1)
	}
	amxAwait(&w.done[block], stage)
	s := take[amxBlock](&w.body.matrix)
	s.begin(w, stage, block)
	if s.j0 < s.j1 { // the last columns of a product may have fewer blocks
		s.compute()
	}
	s.amxWork, s.a, s.b, s.c, s.shared, s.t.b, s.t.c, s.t.sums = nil, nil, nil, nil, nil, nil, nil, nil
	w.body.matrix.Put(s)
}
