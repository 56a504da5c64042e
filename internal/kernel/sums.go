package kernel

import "math"

// dotOf returns Σ x[i]·y[i]. y must be at least as long as x.
func dotOf[F Float](x, y []F) F { return bodyOf[F]().dot(x, y[:len(x)]) }

// axpy adds a·x to y, which must be at least as long as x.
func axpy[F Float](y []F, a F, x []F) { bodyOf[F]().axpy(y[:len(x)], x, a) }

// scale multiplies x by a.
func scale[F Float](x []F, a F) { bodyOf[F]().scale(x, a) }

func scalePortable[F Float](x []F, a F) {
	for i := range x {
		x[i] *= a
	}
}

func axpyPortable[F Float](y, x []F, a F) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += a * v
	}
}

// MaxOf returns the largest element of x, −Inf if x is empty, or NaN if any element is NaN.
func MaxOf[F Float](x []F) F { return bodyOf[F]().maxOf(x) }

// maxOfPortable returns the largest element of x, −Inf if x is empty, or NaN if any element is NaN.
func maxOfPortable[F Float](x []F) F {
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

// dotPortable returns Σ x[i]·y[i]. It keeps four sums, so that additions needn't wait for one another.
func dotPortable[F Float](x, y []F) F {
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

func dotsPortable[F Float](x, y, z []F) (a, b F) { return dotPortable(x, y), dotPortable(x, z) }

func hasNaNPortable[F Float](x []F) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}

// SumSquares returns the sum of the squares of x, added up in float64.
func SumSquares[F Float](x []F) float64 { return bodyOf[F]().sumSquares(x) }

func sumSquaresPortable[F Float](x []F) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}
