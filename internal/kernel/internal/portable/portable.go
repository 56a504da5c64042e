// Package portable computes what package kernel's functions on slices compute, in plain Go. It runs on every processor,
// for float32 and float64, and defines what the assembly must compute. Each call runs on one goroutine.
//
// The first arguments receive the results. The slices of an elementwise function have equal lengths. A row of a matrix
// has the length of the other operands or, if there is a width, that length.
package portable

import "unsafe"

// Float is the set of element types.
type Float interface{ float32 | float64 }

// Is32 reports whether F is float32.
func Is32[F Float]() bool { return unsafe.Sizeof(F(0)) == 4 }

// Finite reports whether x is neither NaN nor infinite.
func Finite[F Float](x F) bool { return x-x == 0 }

// AllZero reports whether all elements are 0.
func AllZero[F Float](x []F) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}
