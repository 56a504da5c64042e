package portable

import "math"

// A bfloat16 is the upper half of a float32: 8 bits of exponent, and 8 significant bits of which 7 are stored. This
// package keeps a bfloat16 as the float32 of the same value.

// InfinityBits are the bits of an infinite float32. Smaller bits, without the sign, are of finite numbers.
const InfinityBits = 0x7f800000

// RoundBFloat16 returns the bfloat16 nearest to x; if two are equally near, the one whose last bit is 0. Numbers above
// the largest bfloat16 by half a step or more become infinities, and NaN stays NaN. Subnormal numbers become zeros of
// the same sign, so no operand of a product is subnormal. The instruction VCVTNEPS2BF16 gives the same bits.
func RoundBFloat16(x float32) float32 {
	const quiet = 1 << 22
	bits := math.Float32bits(x)
	switch {
	case bits&InfinityBits == 0:
		bits &= 1 << 31
	case x != x:
		bits |= quiet
	default:
		bits += 0x7fff + bits>>16&1
	}
	return math.Float32frombits(bits &^ 0xffff)
}

// RoundBFloat16s rounds each element of x to bfloat16.
func RoundBFloat16s(x []float32) {
	for i, v := range x {
		x[i] = RoundBFloat16(v)
	}
}

// BFloat16Terms is the number of terms that one TDPBF16PS adds to an element.
const BFloat16Terms = 32

// TDPBF16PS returns an element of the tile that Intel's instruction TDPBF16PS computes: c plus 32 products of bfloat16.
// Factor p of the products is a[p·stepA] and b[p·stepB]. Products with even p and products with odd p are added in two
// sums, which begin at 0, by fused multiply-adds. Then the sums are added, and the result is added to c. All
// operations round to the nearest float32, ties to even, and flush to zero. No argument may be subnormal: the
// instruction would read it as 0. Only the payload of NaN may differ from the instruction.
func TDPBF16PS(c float32, a []float32, stepA int, b []float32, stepB int) float32 {
	var even, odd float64
	for p := 0; p < BFloat16Terms; p += 2 {
		even = Flushed(even + float64(a[p*stepA])*float64(b[p*stepB]))
		odd = Flushed(odd + float64(a[(p+1)*stepA])*float64(b[(p+1)*stepB]))
	}
	return float32(Flushed(float64(c) + Flushed(even+odd)))
}

// Flushed rounds x to the nearest float32. If the result is below the smallest normal float32, it becomes a zero of the
// same sign. As in hardware, that is decided after rounding to 24 bits, so the numbers just below 2⁻¹²⁶ aren't Flushed.
//
// TDPBF16PS rounds its sums to float64 before. The second rounding never sees a tie that the first has made:
//
//   - A product of two bfloat16 has 16 bits, so it is exact in float64. If its sum with a float32 is not, the smaller
//     operand is below the larger one by a factor of more than 2²⁸. The larger one has at most 24 bits, so it is
//     itself a float32, and the exact sum is far from the middle between two of them.
//   - A sum of two float32, rounded to at least 2·24 + 2 bits, can be rounded again to 24 bits.
func Flushed(x float64) float64 {
	const least = 0x1p-126 - 0x1p-151 // halfway between 24-bit numbers; the even one is the smallest normal number
	if math.Abs(x) < least {
		return math.Copysign(0, x)
	}
	return float64(float32(x))
}
