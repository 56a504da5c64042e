package kernel

// dotOf returns Σ x[i]·y[i]. y must be at least as long as x.
func dotOf[F Float](x, y []F) F { return bodyOf[F]().dot(x, y[:len(x)]) }

// axpy adds a·x to y, which must be at least as long as x.
func axpy[F Float](y []F, a F, x []F) { bodyOf[F]().axpy(y[:len(x)], x, a) }

// scale multiplies x by a.
func scale[F Float](x []F, a F) { bodyOf[F]().scale(x, a) }

// MaxOf returns the largest element of x, −Inf if x is empty, or NaN if any element is NaN.
func MaxOf[F Float](x []F) F { return bodyOf[F]().maxOf(x) }

// SumSquares returns the sum of the squares of x, added up in float64.
func SumSquares[F Float](x []F) float64 { return bodyOf[F]().sumSquares(x) }
