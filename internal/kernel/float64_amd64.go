//go:build !noasm

package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// These functions for float64 are in Go, except for the exponentials and the largest element. Each would have 100 to
// 350 lines of assembly.

// vectorTable64 returns the table of functions for float64 on amd64.
func vectorTable64() vectorTable[float64] {
	t := vectorTable64AVX2()
	t.expSum, t.softmax, t.silu, t.siluGrad = expSum64, softmax64, silu64, siluGrad64
	return t
}

func expSum64(src []float64, shift float64) (sum float64) {
	var e [64]float64
	for len(src) > 0 {
		n := min(len(src), len(e))
		sum += vectorExpShift64AVX2(e[:n], src[:n], shift)
		src = src[n:]
	}
	return sum
}

func softmax64(w, scores []float64) float64 {
	largest := vectorMaxOf64AVX2(scores)
	if portable.Finite(largest) {
		vectorScale64AVX2(w, 1/vectorExpShift64AVX2(w, scores, largest))
	}
	return largest
}

func silu64(y, x []float64) {
	var e [64]float64
	for len(x) > 0 {
		n := min(len(x), len(e))
		vectorExpShift64AVX2(e[:n], x[:n], 0)
		for i, v := range x[:n] {
			y[i] = portable.SiluOf(v, e[i])
		}
		y, x = y[n:], x[n:]
	}
}

func siluGrad64(dx, x, g []float64) {
	var e [64]float64
	for len(x) > 0 {
		n := min(len(x), len(e))
		vectorExpShift64AVX2(e[:n], x[:n], 0)
		for i, v := range x[:n] {
			dx[i] = portable.SiluGradOf(v, e[i], g[i])
		}
		dx, x, g = dx[n:], x[n:], g[n:]
	}
}
