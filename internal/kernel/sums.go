package kernel

// Axpy adds a·x to y, which must be at least as long as x, on one core.
func Axpy[F Float](y []F, a F, x []F) { bodyOf[F]().axpy(y[:len(x)], x, a) }

// Dot returns Σ x·y, on one core. y must be at least as long as x.
func Dot[F Float](x, y []F) F { return bodyOf[F]().dot(x, y[:len(x)]) }

// MaxOf returns the largest element of x, −Inf if x is empty, or NaN if any element is NaN.
func MaxOf[F Float](x []F) F { return bodyOf[F]().maxOf(x) }

// SumSquares returns the sum of the squares of x, added up in float64.
func SumSquares[F Float](x []F) float64 { return bodyOf[F]().sumSquares(x) }

// ExpShift sets dst[i] to exp(src[i] − shift) and returns the sum of dst, on one core. dst may be src.
func ExpShift[F Float](dst, src []F, shift F) F { return bodyOf[F]().expShift(dst, src, shift) }

// ExpSum returns the sum of exp(src[i] − shift), on one core.
func ExpSum[F Float](src []F, shift F) F { return bodyOf[F]().expSum(src, shift) }
