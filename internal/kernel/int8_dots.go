package kernel

// int8Tiles holds the functions of one instruction set for products with int8 weights.
type int8Tiles struct {
	one  int8Dots // for one row of x
	four int8Dots // for four rows of x; nil for none
}

// An int8Dots computes what portable.Int8Dots computes. In assembly, the number of rows of w is a multiple of int8Rows,
// and not 0.
//
// In assembly, an int8Dots also fetches weights for later from memory: those after w, up to len(w) of them. The calls
// with the same w share this work. Call number pass fetches its part, which is step/32.
type int8Dots func(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, pass, step int)
