package kernel

// Gate sets y to act(a)·b, element by element. act is one of this package's activations.
func Gate[F Float](cores int, y, a, b []F, act func(cores int, y, x []F)) {
	runElements(cores, len(y), geluCost, func(lo, hi int) {
		y, b := y[lo:hi], b[lo:hi]
		act(1, y, a[lo:hi]) // not divided any further
		bodyOf[F]().mul(y, y, b)
	})
}

// GateGrad sets da and db to the gradients of Gate, where g is the gradient of y: da = g·b·act'(a) and db = g·act(a).
// Where g is 0, both are 0, even if a or b is NaN. The argument grad is the gradient function of act.
func GateGrad[F Float](cores int, da, db, a, b, g []F, act func(cores int, y, x []F), grad func(cores int, dx, x, g []F)) {
	runRanges(cores, len(g), grain/geluCost, 2*len(g)*geluCost, func(lo, hi int) {
		da, db, a, b, g := da[lo:hi], db[lo:hi], a[lo:hi], b[lo:hi], g[lo:hi]
		body := bodyOf[F]()
		body.skipMul(db, b, g)
		grad(1, da, a, db)
		act(1, db, a)
		body.skipMul(db, db, g)
	})
}
