package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// A loop processes items, which are elements or rows. run processes the items in [lo, hi).
type loop[F Float] interface {
	run(w *loopWork[F], lo, hi int)
}

// loopWork holds the operands of a loop over n items. The items are divided into tasks of step items; the last task may
// have fewer. The division doesn't depend on the number of cores. The type of the loop decides which operands it uses,
// and how.
type loopWork[F Float] struct {
	loop    loop[F]
	body    *body[F]
	n, step int

	out, x, y, z []F
	plus         []F // added to out if it isn't nil
	unary        func(y, x []F)
	binary       func(out, x, y []F)
	width        int // elements per row
	a            F
	eps          float64
	sums         []F
	factors      [9]F
	mask         Mask[F]
	targets      []int
	distance     portable.Distance
	logSums      []float64
	axes         [2]int
	choice       dropoutChoice[F]
}

// runLoop runs a loop with a copy of its operands. The argument cost is the cost of the whole loop, where an addition
// costs 1. A loop is a type and not a function, so that runLoop allocates no memory after its first calls.
func runLoop[F Float](cores int, l loop[F], cost int, operands *loopWork[F]) {
	body := bodyOf[F]()
	w := take[loopWork[F]](&body.loops)
	*w = *operands
	w.loop, w.body = l, body
	if w.n <= w.step {
		l.run(w, 0, w.n)
	} else {
		parallelRun(cores, parts(w.n, w.step), w, cost >= wakeWork)
	}
	*w = loopWork[F]{}
	body.loops.Put(w)
}

// run does one task.
func (w *loopWork[F]) run(task int) {
	w.loop.run(w, task*w.step, min((task+1)*w.step, w.n))
}

// runUnary sets y to f(x), where f is a function of the body. The argument cost is the cost per element, where an
// addition costs 1.
func runUnary[F Float](cores int, f func(y, x []F), cost int, y, x []F) {
	runLoop[F](cores, elementLoop[F]{}, cost*len(y), &loopWork[F]{n: len(y), step: grain / cost, unary: f, out: y, x: x})
}

// runBinary sets out to f(x, y), like runUnary.
func runBinary[F Float](cores int, f func(out, x, y []F), cost int, out, x, y []F) {
	runLoop[F](cores, elementLoop[F]{}, cost*len(out), &loopWork[F]{n: len(out), step: grain / cost, binary: f, out: out, x: x, y: y})
}

type elementLoop[F Float] struct{}

func (elementLoop[F]) run(w *loopWork[F], lo, hi int) {
	if w.unary != nil {
		w.unary(w.out[lo:hi], w.x[lo:hi])
	} else {
		w.binary(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi])
	}
}

// runRanges divides [0, n) into ranges of size items and calls do for each; the last range may have fewer items. The
// argument cost is the cost of all ranges, where an addition costs 1. runRanges allocates memory: use it if the
// operands don't fit into a loopWork.
func runRanges(cores, n, size, cost int, do func(lo, hi int)) {
	if n <= size {
		do(0, n)
		return
	}
	task := parallelFunc(func(i int) { do(i*size, min((i+1)*size, n)) })
	parallelRun(cores, parts(n, size), task, cost >= wakeWork)
}

// runElements is runRanges for n elements of the given cost.
func runElements(cores, n, cost int, do func(lo, hi int)) {
	runRanges(cores, n, grain/cost, cost*n, do)
}
