package kernel

// ExpShift sets dst[i] to exp(src[i] − shift) and returns the sum of dst, on one core. dst may be src.
func ExpShift[F Float](dst, src []F, shift F) F { return bodyOf[F]().expShift(dst, src, shift) }

// ExpSum returns the sum of exp(src[i] − shift), on one core.
func ExpSum[F Float](src []F, shift F) F { return bodyOf[F]().expSum(src, shift) }
