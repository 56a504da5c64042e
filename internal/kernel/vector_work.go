package kernel

import "sync"

// vectorPart is work on elements, or rows, that can be divided: do works on those from lo to hi.
type vectorPart[F Float] interface {
	do(w *vectorWork[F], lo, hi int)
}

// vectorWork is the operands of a vectorPart and its division into tasks of step elements each, the last one shorter.
// The division depends on the work alone. Which operands mean what, the part says.
type vectorWork[F Float] struct {
	part    vectorPart[F]
	body    *vectorBody[F]
	n, step int

	out, x, y, z []F
	width        int // of a row
	a            F
	eps          float64
	sums         []F
	factors      [9]F
	mask         Mask[F]
	targets      []int
	logSums      []float64
	axes         [2]int
	key          uint64
	threshold    uint32
}

// run does one task.
func (w *vectorWork[F]) run(task int) {
	w.part.do(w, task*w.step, min((task+1)*w.step, w.n))
}

// grain is how many elements of cheap elementwise work one task takes: enough to outweigh handing it to another
// goroutine.
const grain = 16384

// vectorWakeWork is from how many elements of cheap work on a sleeping helper is worth its waking.
const vectorWakeWork = 1 << 17

// rowsPerTask is how many rows of a width make a task, where an element costs as much as so many cheap ones.
func rowsPerTask(width, cost int) int { return max(1, grain/max(width*cost, 1)) }

// spread does the work in tasks of step, where the whole costs as much as so many cheap elements. It allocates nothing
// in the steady state.
func spread[F Float](part vectorPart[F], cost int, work *vectorWork[F]) {
	w := vectorGet[F]()
	*w = *work
	w.part, w.body = part, vectorOf[F]()
	if w.n <= w.step {
		part.do(w, 0, w.n)
	} else {
		parallelRun((w.n+w.step-1)/w.step, w, cost >= vectorWakeWork)
	}
	*w = vectorWork[F]{}
	vectorPool[F]().Put(w)
}

var (
	vectorPool32 = sync.Pool{New: func() any { return new(vectorWork[float32]) }}
	vectorPool64 = sync.Pool{New: func() any { return new(vectorWork[float64]) }}
)

func vectorPool[F Float]() *sync.Pool {
	if is32[F]() {
		return &vectorPool32
	}
	return &vectorPool64
}

func vectorGet[F Float]() *vectorWork[F] { return vectorPool[F]().Get().(*vectorWork[F]) }
