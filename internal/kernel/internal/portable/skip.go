package portable

// In these functions, zero times any number is zero, even zero times NaN.

// SkipProduct returns x·y, where zero times any number is zero, even zero times NaN.
func SkipProduct[F Float](x, y F) F {
	if x == 0 || y == 0 {
		return 0
	}
	return x * y
}

// SkipDot returns Σ x·y, with SkipProduct's rule for zero.
func SkipDot[F Float](x, y []F) F {
	var sum F
	for i, v := range x {
		if v != 0 && y[i] != 0 {
			sum += v * y[i]
		}
	}
	return sum
}

// SkipAxpy adds a·x to y, with SkipProduct's rule for zero.
func SkipAxpy[F Float](y []F, a F, x []F) {
	for i := range y {
		if a != 0 && x[i] != 0 {
			y[i] += a * x[i]
		}
	}
}

// Cleaned returns a copy of x with 0 in place of NaN and infinities.
func Cleaned[F Float](x []F) []F {
	out := make([]F, len(x))
	for i, v := range x {
		if Finite(v) {
			out[i] = v
		}
	}
	return out
}

// AllFinite reports whether no element is NaN or infinite.
func AllFinite[F Float](x []F) bool {
	for _, v := range x {
		if !Finite(v) {
			return false
		}
	}
	return true
}
