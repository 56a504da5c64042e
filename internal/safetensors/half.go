package safetensors

import (
	"encoding/binary"
	"math"
)

// Decode converts raw values of dtype F16, BF16, F32 or F64, as they are in a file, and stores them in values. It
// rounds float64 to the nearest float32. For any other dtype, Decode panics.
func Decode[T float32 | float64](values []T, dtype string, raw []byte) {
	switch raw = raw[:len(values)*int(widths[dtype])]; dtype {
	case "F16":
		for i := range values {
			values[i] = T(halfToFloat(binary.LittleEndian.Uint16(raw[2*i:])))
		}
	case "BF16":
		for i := range values {
			values[i] = T(brainToFloat(binary.LittleEndian.Uint16(raw[2*i:])))
		}
	case "F32":
		for i := range values {
			values[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
	case "F64":
		for i := range values {
			values[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	default:
		panic("safetensors: no floating-point dtype: " + dtype)
	}
}

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
