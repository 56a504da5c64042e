package kernel

import (
	"math"
	"testing"
)

// sameOnAnyCores fails if the result of run depends on the number of cores.
func sameOnAnyCores(t *testing.T, run func(cores int) []float32) {
	t.Helper()
	want := run(1)
	for _, cores := range []int{2, 3, 7} {
		for i, v := range run(cores) {
			if math.Float32bits(v) != math.Float32bits(want[i]) {
				t.Fatalf("element %[2]d is %[3]v on %[1]d cores and %[4]v on one core", cores, i, v, want[i])
			}
		}
	}
}

// TestBitsDoNotDependOnCores tests the functions that divide their work, unless a separate test does so.
func TestBitsDoNotDependOnCores(t *testing.T) {
	sameOnAnyCores(t, func(cores int) []float32 {
		const n, w = 300, 257
		x, g, row := normals[float32](1, n*w), normals[float32](2, n*w), normals[float32](3, w)
		var results []float32
		out := func() []float32 { return make([]float32, n*w) }
		keep := func(o []float32) { results = append(results, o...) }
		for _, f := range []func(cores int, y, x []float32){ReLU[float32], GELU[float32], GELUTanh[float32]} {
			y := out()
			f(cores, y, x)
			keep(y)
		}
		for _, f := range []func(cores int, dx, x, g []float32){ReLUGrad[float32], GELUGrad[float32], GELUTanhGrad[float32], Add[float32], SkipMul[float32]} {
			y := out()
			f(cores, y, x, g)
			keep(y)
		}
		y, dx, dgamma, dbeta := out(), out(), make([]float32, w), make([]float32, w)
		LayerNorm(cores, y, x, row, row, 1e-5)
		keep(y)
		LayerNormGrad(cores, dx, dgamma, dbeta, x, row, g, y, 1e-5)
		keep(dx)
		keep(dgamma)
		keep(dbeta)
		MaskedSoftmax(cores, y, x, Mask[float32]{Shape: [4]int{3, 10, 10, w}, Causal: true})
		keep(y)
		SoftmaxGrad(cores, dx, y, g, w)
		keep(dx)
		SumRows(cores, dgamma, x)
		keep(dgamma)
		AddRow(cores, x, row)
		keep(x)
		SwapAxes(cores, y, x, 3, 10, 10, w)
		keep(y)
		DropoutMask(cores, y, 0.3, 1, 2, 3)
		keep(y)
		MaskScores(cores, y, x, Mask[float32]{Shape: [4]int{3, 10, 10, w}, Causal: true, Slopes: row})
		keep(y)
		MeanRows(cores, dgamma, x, []Span{{0, n - 1}}, n, w)
		keep(dgamma)
		Repeat(cores, y, x[:n*w/3], w, 3)
		keep(y)
		SumRepeats(cores, dx[:n*w/3], g, w, 3)
		keep(dx)
		AdamW(cores, x, g, y, out(), AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.9, Eps: 1e-8, GradScale: 1, Correct1: 1, Correct2: 1})
		keep(x)
		return results
	})
}
