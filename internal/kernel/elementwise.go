package kernel

// Add sets out to x + y.
func Add[F Float](cores int, out, x, y []F) { runBinary(cores, bodyOf[F]().add, 1, out, x, y) }

// SkipMul sets out to x·y, and to 0 where y is 0, even if x is NaN.
func SkipMul[F Float](cores int, out, x, y []F) { runBinary(cores, bodyOf[F]().skipMul, 1, out, x, y) }

// Scale multiplies x by a, where zero times any number is zero.
func Scale[F Float](cores int, x []F, a F) {
	if a == 0 {
		clear(x)
		return
	}
	runLoop[F](cores, scaleLoop[F]{}, len(x), &loopWork[F]{n: len(x), step: grain, x: x, a: a})
}

type scaleLoop[F Float] struct{}

func (scaleLoop[F]) run(w *loopWork[F], lo, hi int) { w.body.scale(w.x[lo:hi], w.a) }
