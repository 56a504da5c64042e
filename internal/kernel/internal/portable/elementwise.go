package portable

// Add sets out to x + y.
func Add[F Float](out, x, y []F) {
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = x[i] + y[i]
	}
}

// Mul sets out to x·y.
func Mul[F Float](out, x, y []F) {
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = x[i] * y[i]
	}
}

// SkipMul sets out to x·y, and to 0 where y is 0, even if x is NaN.
func SkipMul[F Float](out, x, y []F) {
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		if y[i] == 0 {
			out[i] = 0
		} else {
			out[i] = x[i] * y[i]
		}
	}
}

// Scale multiplies x by a.
func Scale[F Float](x []F, a F) {
	for i := range x {
		x[i] *= a
	}
}

// Axpy adds a·x to y.
func Axpy[F Float](y, x []F, a F) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += a * v
	}
}
