package safetensors

import "math"

// halfToFloat returns the value of an IEEE 754 binary16: a sign bit, 5 exponent bits with bias 15, and 10 fraction
// bits.
func halfToFloat(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // zero or subnormal: fraction · 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f: // infinite or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent-15+127)<<23 | fraction<<13)
}

// brainToFloat returns the value of a bfloat16: the upper half of a float32.
func brainToFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
