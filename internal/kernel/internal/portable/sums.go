package portable

import "math"

// MaxOf returns the largest element of x, −Inf if x is empty, or NaN if any element is NaN.
func MaxOf[F Float](x []F) F {
	largest := F(math.Inf(-1))
	for _, v := range x {
		if v > largest {
			largest = v
		}
		if v != v {
			return v
		}
	}
	return largest
}

// Dot returns Σ x[i]·y[i]. It keeps four sums, so that additions needn't wait for one another.
func Dot[F Float](x, y []F) F {
	var s0, s1, s2, s3 F
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s2) + (s1 + s3)
}

// Dots returns Σ x·y and Σ x·z.
func Dots[F Float](x, y, z []F) (a, b F) { return Dot(x, y), Dot(x, z) }

// HasNaN reports whether an element is NaN.
func HasNaN[F Float](x []F) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}

// SumSquares returns Σ x², added up in float64.
func SumSquares[F Float](x []F) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
