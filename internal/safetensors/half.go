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
	magnitude := uint32(h&0x7fff) << 13
	if h&0x7c00 == 0x7c00 { // infinite or NaN
		return math.Float32frombits(uint32(h>>15)<<31 | 0xff<<23 | magnitude)
	}
	scaled := math.Float32frombits(magnitude) * 0x1p112 // 127 − 15 = 112 is the difference of the biases
	return math.Float32frombits(uint32(h>>15)<<31 | math.Float32bits(scaled))
}

// brainToFloat returns the value of a bfloat16: the upper half of a float32.
func brainToFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
