package portable

import "math"

// exp returns the exponential of x. The error is at most 1.5 ulp, also for subnormal results. exp uses exp(x) =
// 2ⁿ·exp(r) with r = x − n·ln 2 and |r| ≤ ½·ln 2. It computes exp(r) by Taylor's polynomial, of degree 7 in float32 and
// 13 in float64. The remainder is below r⁸/8!·√2 < 2⁻²⁷ or r¹⁴/14!·√2 < 2⁻⁵⁷.
func exp[F Float](x F) F {
	if Is32[F]() {
		return F(exp32(float32(x)))
	}
	return F(exp64(float64(x)))
}

func exp32(x float32) float32 {
	const (
		round = 3 << 22   // its ulp is 1, so x + round − round is x, rounded to an integer
		ln2Hi = 0x1.63p-1 // 9 bits, so n·ln2Hi is exact
		ln2Lo = math.Ln2 - ln2Hi
	)
	switch { // beyond these limits, the result is 0 or +Inf
	case x < -104:
		return 0
	case x > 89:
		x = 89
	case x != x:
		return x
	}
	n := x*math.Log2E + round - round
	r := x - n*ln2Hi - n*ln2Lo
	r2 := r * r
	low := 1.0/2 + r*(1.0/6) + r2*(1.0/24+r*(1.0/120))
	p := r2*(low+r2*r2*(1.0/720+r*(1.0/5040))) + r + 1
	// 2ⁿ may overflow or underflow where the result doesn't, so multiply in two steps.
	half := int32(n) >> 1
	return p * math.Float32frombits(uint32(half+127)<<23) * math.Float32frombits(uint32(int32(n)-half+127)<<23)
}

// exp64 replaces math.Exp: on amd64 (Go 1.26), math.Exp returns +Inf for results from 2^1023.5 on.
func exp64(x float64) float64 {
	const (
		round = 3 << 51
		ln2Hi = 0x1.62e42feep-1 // 32 bits
		ln2Lo = math.Ln2 - ln2Hi
	)
	switch {
	case x < -746:
		return 0
	case x > 710:
		x = 710
	case x != x:
		return x
	}
	n := x*math.Log2E + round - round
	r := x - n*ln2Hi - n*ln2Lo
	r2 := r * r
	r4 := r2 * r2
	low := 1.0/2 + r*(1.0/6) + r2*(1.0/24+r*(1.0/120))
	mid := 1.0/720 + r*(1.0/5040) + r2*(1.0/40320+r*(1.0/362880))
	high := 1.0/3628800 + r*(1.0/39916800) + r2*(1.0/479001600+r*(1.0/6227020800))
	p := r2*(low+r4*(mid+r4*high)) + r + 1
	half := int64(n) >> 1
	return p * math.Float64frombits(uint64(half+1023)<<52) * math.Float64frombits(uint64(int64(n)-half+1023)<<52)
}

// ExpShift sets dst[i] to exp(src[i] − shift) and returns the sum of dst. A difference of −Inf gives exactly 0,
// +Inf gives +Inf, and NaN gives NaN. dst may be src.
//
// If the difference is exact, the error of the exponential is at most 1.5 ulp, also for subnormal results.
func ExpShift[F Float](dst, src []F, shift F) F {
	dst = dst[:len(src)]
	var sum F
	for i, v := range src {
		e := exp(v - shift)
		dst[i] = e
		sum += e
	}
	return sum
}

// ExpSum returns Σ exp(src − shift).
func ExpSum[F Float](src []F, shift F) F {
	var sum F
	for _, v := range src {
		sum += exp(v - shift)
	}
	return sum
}
