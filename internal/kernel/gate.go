package kernel

// gateStep is the number of elements of a gate in one task: few enough for their activation to be one task.
const gateStep = grain / geluCost

// Gate sets y to act(a)·b, element by element. act sets its first slice to the activation of its second.
func Gate[F Float](y, a, b []F, act func(y, x []F)) {
	runRanges(len(y), gateStep, len(y)*geluCost, func(lo, hi int) {
		y, b := y[lo:hi], b[lo:hi]
		act(y, a[lo:hi])
		bodyOf[F]().mul(y, y, b)
	})
}

// GateGrad sets da and db to the gradients of Gate where g is the gradient of y: da = g·b·act'(a) and db = g·act(a).
// Where g is 0 both are 0, whatever a and b hold. grad sets its first slice to act' of its second times its third, and
// to 0 where the third is 0.
func GateGrad[F Float](da, db, a, b, g []F, act func(y, x []F), grad func(dx, x, g []F)) {
	runRanges(len(g), gateStep, 2*len(g)*geluCost, func(lo, hi int) {
		da, db, a, b, g := da[lo:hi], db[lo:hi], a[lo:hi], b[lo:hi], g[lo:hi]
		body := bodyOf[F]()
		body.skipMul(db, b, g)
		grad(da, a, db)
		act(db, a)
		body.skipMul(db, db, g)
	})
}
