package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
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

// allocatesNothing fails if run allocates memory after its first call.
func allocatesNothing(t *testing.T, what any, run func()) {
	t.Helper()
	if testseed.Race {
		return // the race detector empties pools
	}
	if allocs := testing.AllocsPerRun(20, run); allocs >= 1 { // a garbage collection may have emptied a pool
		t.Errorf("%v: %v allocations, want none", what, allocs)
	}
}

// TestBitsDoNotDependOnCores tests the functions that divide their work, unless a separate test does so.
func TestBitsDoNotDependOnCores(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(cores int) []float32
	}{
		{"loops", func(cores int) []float32 {
			const n, w = 300, 257
			x, g, row := normals[float32](1, n*w), normals[float32](2, n*w), normals[float32](3, w)
			var results []float32
			out := func() []float32 { return make([]float32, n*w) }
			keep := func(o []float32) { results = append(results, o...) }
			for _, f := range activations[float32]() {
				y, dx := out(), out()
				f.value(cores, y, x)
				keep(y)
				f.grad(cores, dx, x, g)
				keep(dx)
			}
			y, dx, dgamma, dbeta := out(), out(), make([]float32, w), make([]float32, w)
			Add(cores, y, x, g)
			keep(y)
			SkipMul(cores, y, x, g)
			keep(y)
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
		}},
		{"gates", func(cores int) []float32 {
			const n = 100001
			a, b, g := normals[float32](1, n), normals[float32](2, n), normals[float32](3, n)
			y, da, db := make([]float32, n), make([]float32, n), make([]float32, n)
			Gate(cores, y, a, b, SiLU[float32])
			GateGrad(cores, da, db, a, b, g, GELU[float32], GELUGrad[float32])
			return slices.Concat(y, da, db)
		}},
		{"RMSNorm", func(cores int) []float32 {
			const n, w = 1000, 257
			x, g, gamma := normals[float32](1, n*w), normals[float32](2, n*w), normals[float32](3, w)
			y, dx, dgamma := make([]float32, n*w), make([]float32, n*w), make([]float32, w)
			RMSNorm(cores, y, x, gamma, 1e-6)
			RMSNormGrad(cores, dx, dgamma, x, gamma, g, y, 1e-6)
			return slices.Concat(y, dx, dgamma)
		}},
		{"rotary", func(cores int) []float32 {
			r := Rotary{Batch: 2, Outer: 2, Length: 400, Inner: 3, Width: 40, Dim: 36}
			cos, sin := make([]float32, 400*18), make([]float32, 400*18)
			frequencies := make([]float64, 18)
			for i := range frequencies {
				frequencies[i] = 1 / float64(1+i)
			}
			positions := make([]int, 400)
			for i := range positions {
				positions[i] = i
			}
			RotaryTable(cores, cos, sin, positions, frequencies, 1.5)
			x := normals[float32](1, 2*2*400*3*40)
			y := make([]float32, len(x))
			Rotate(cores, y, x, cos, sin, r)
			return slices.Concat(y, cos, sin)
		}},
		{"additive", func(cores int) []float32 {
			s := AdditiveShape{Batch: 2, Queries: 60, Keys: 77, Width: 23}
			q, k, v := normals[float32](1, s.Batch*s.Queries*s.Width), normals[float32](2, s.Batch*s.Keys*s.Width), normals[float32](3, s.Width)
			scores, dq, dk, dv := normals[float32](4, s.Batch*s.Queries*s.Keys), make([]float32, len(q)), make([]float32, len(k)), make([]float32, len(v))
			AdditiveScoresGrad(cores, dq, dk, dv, q, k, v, scores, s, make([]float32, AdditiveWork(s)))
			AdditiveScores(cores, scores, q, k, v, s)
			return slices.Concat(scores, dq, dk, dv)
		}},
		{"cross-entropy", func(cores int) []float32 {
			const n, v = 300, 257
			logits, targets, scales := normals[float32](1, n*v), make([]int, n), slices.Repeat([]float32{0.5}, n)
			losses, logSums, d := make([]float32, n), make([]float64, n), make([]float32, n*v)
			CrossEntropy(cores, losses, logSums, logits, targets, v, 0.1)
			CrossEntropyGrad(cores, d, logSums, logits, targets, v, 0.1, scales)
			return slices.Concat(losses, d)
		}},
		{"distances", func(cores int) (results []float32) {
			const rows, width = 300, 257
			x, targets, weights := normals[float32](1, rows*width), normals[float32](2, rows*width), normals[float32](3, rows)
			sums, dx := make([]float64, DistanceTasks(rows*width)), make([]float32, rows*width)
			for _, d := range distances {
				bits := math.Float64bits(SumDistances(cores, sums, d, 0.5, x, targets, weights, width))
				results = append(results, float32(bits>>44), float32(bits>>22&(1<<22-1)), float32(bits&(1<<22-1)))
				DistanceGrad(cores, dx, d, 0.5, x, targets, weights, width)
				results = append(results, dx...)
			}
			return results
		}},
		{"solvers", func(cores int) []float32 {
			const r, c = 300, 257 // rows and columns
			w, g := normals[float32](1, r*c), normals[float32](2, r*c)
			m, v := normals[float32](3, r*c), make([]float32, r*c)
			for _, step := range []func(){
				func() {
					SGD(cores, w, g, m, SGDStep{Rate: 0.1, Momentum: 0.9, Decay: 0.1, GradScale: 0.5, Nesterov: true})
				},
				func() {
					Adam(cores, w, g, m, v, AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.9, Eps: 1e-8, Decay: 0.1, GradScale: 1, Correct1: 1, Correct2: 1})
				},
				func() { Lion(cores, w, g, m, LionStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.9, GradScale: 1}) },
				func() { Muon(cores, w, g, m, r, c, MuonStep{Rate: 0.1, Momentum: 0.9, GradScale: 1, Iterations: 5}) },
				func() { Approach(cores, w, g, 0.1) },
				func() { ScaleClamp(cores, w, 0.5, 1) },
			} {
				copy(g, normals[float32](4, r*c))
				step()
			}
			Spread(cores, 10, 1<<20, func(i int) { Scale(1, w[i*r:(i+1)*r], float32(i)) })
			return append(w, m...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { sameOnAnyCores(t, c.run) })
	}
}
