package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestVectorSolvers compares a few steps of each rule with its formula in float64, for every length up to 70.
func TestVectorSolvers(t *testing.T) {
	eachBody(t, func(t *testing.T) { testSolvers[float32](t, 2e-6) }, func(t *testing.T) { testSolvers[float64](t, 1e-14) })
}

func testSolvers[F Float](t *testing.T, tol float64) {
	adam := AdamStep{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-6, Decay: 0.1, GradScale: 0.5, Correct1: 2, Correct2: 3}
	for _, c := range []struct {
		name string
		run  func(w, g, m, v []F)
		want func(w, g, m, v *float64)
	}{
		{"descent", func(w, g, m, v []F) { SGD(0, w, g, nil, SGDStep{Rate: 0.1, GradScale: 1}) },
			func(w, g, m, v *float64) { *w -= 0.1 * *g }},
		{"momentum", func(w, g, m, v []F) { SGD(0, w, g, m, SGDStep{Rate: 0.1, Momentum: 0.9, Decay: 0.2, GradScale: 0.5}) },
			func(w, g, m, v *float64) {
				*m = 0.9**m + 0.5**g + 0.2**w
				*w -= 0.1 * *m
			}},
		{"Nesterov", func(w, g, m, v []F) { SGD(0, w, g, m, SGDStep{Rate: 0.1, Momentum: 0.9, GradScale: 1, Nesterov: true}) },
			func(w, g, m, v *float64) {
				*m = 0.9**m + *g
				*w -= 0.1 * (*g + 0.9**m)
			}},
		{"Adam", func(w, g, m, v []F) { Adam(0, w, g, m, v, adam) },
			func(w, g, m, v *float64) {
				d := 0.5**g + 0.1**w
				*m = 0.9**m + 0.1*d
				*v = 0.99**v + 0.01*d*d
				*w -= 0.1 * 2 * *m / (math.Sqrt(*v*3) + 1e-6)
			}},
		{"AdamW", func(w, g, m, v []F) {
			before := wide(g)
			AdamW(0, w, g, m, v, adam)
			closeTo(t, "gradients", g, before, 0)
		},
			func(w, g, m, v *float64) {
				d := 0.5 * *g
				*m = 0.9**m + 0.1*d
				*v = 0.99**v + 0.01*d*d
				*w -= 0.1*0.1**w + 0.1*2**m/(math.Sqrt(*v*3)+1e-6)
			}},
		{"Lion", func(w, g, m, v []F) {
			Lion(0, w, g, m, LionStep{Rate: 0.1, Beta1: 0.5, Beta2: 0.75, Decay: 0.1, GradScale: 0.5})
		},
			func(w, g, m, v *float64) {
				sign := 0.0
				if c := 0.5**m + 0.5*0.5**g; c != 0 {
					sign = math.Copysign(1, c)
				}
				*w = (1-0.1*0.1)**w - 0.1*sign
				*m = 0.75**m + 0.25*0.5**g
			}},
		{"average", func(w, g, m, v []F) { Approach(0, w, g, 0.1); clear(g) },
			func(w, g, m, v *float64) { *w = 0.9**w + 0.1**g }},
		{"clamp", func(w, g, m, v []F) { copy(w, g); ScaleClamp(0, w, 0.5, 0.4); clear(g) },
			func(w, g, m, v *float64) { *w = min(max(0.5**g, -0.4), 0.4) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o operands[F]
			for n := range 71 {
				w, g, m, v := o.random(t, n), o.random(t, n), o.random(t, n), o.random(t, n)
				clear(m)
				clear(v)
				w64, m64, v64 := wide(w), wide(m), wide(v)
				for step := range 3 {
					copy(g, normals[F](uint64(step), n))
					for i, d := range wide(g) {
						c.want(&w64[i], &d, &m64[i], &v64[i])
					}
					c.run(w, g, m, v)
					within(t, fmt.Sprintf("%d weights", n), w, w64, tol) // numbers near 1
					within(t, fmt.Sprintf("%d means", n), m, m64, tol)
				}
				o.intact(t, c.name)
			}
		})
	}
}

// TestMuon checks that Muon's step equals the formula in float64, and that the step's singular values are all near 1.
func TestMuon(t *testing.T) {
	eachBody(t, func(t *testing.T) { testMuon[float32](t, 1e-4) }, func(t *testing.T) { testMuon[float64](t, 1e-11) })
}

func testMuon[F Float](t *testing.T, tol float64) {
	for _, shape := range [][2]int{{1, 1}, {1, 7}, {7, 1}, {5, 5}, {4, 9}, {9, 4}, {40, 70}} {
		inputs, out := shape[0], shape[1]
		what := fmt.Sprintf("(%d, %d)", inputs, out)
		w, g, mean := normals[F](1, inputs*out), normals[F](2, inputs*out), normals[F](3, inputs*out)
		w64, x := wide(w), make([]float64, inputs*out)
		for i := range x {
			d := 0.5 * float64(g[i])
			x[i] = 0.1*d + 0.9*(0.9*float64(mean[i])+0.1*d)
		}
		x = orthogonalPlain(x, inputs, out)
		for i := range w64 {
			w64[i] = (1-0.2*0.1)*w64[i] - 0.2*math.Sqrt(max(1, float64(out)/float64(inputs)))*x[i]
		}
		Muon(0, w, g, mean, inputs, out, MuonStep{Rate: 0.2, Momentum: 0.9, Decay: 0.1, GradScale: 0.5, Iterations: 5})
		closeTo(t, what, w, w64, tol)
		// ‖X‖² is the sum of the squared singular values, each near 1.
		k := float64(min(inputs, out))
		if sum := SumSquares(x); sum < 0.4*k || sum > 1.5*k {
			t.Errorf("%s: the squared singular values add up to %v, want about %v", what, sum, k)
		}
	}
	w := []F{1, 2, 3, 4}
	Muon(0, w, make([]F, 4), make([]F, 4), 2, 2, MuonStep{Rate: 1, Momentum: 0.9, GradScale: 1, Iterations: 5})
	closeTo(t, "weights without a gradient", w, []float64{1, 2, 3, 4}, 0)
}

// orthogonalPlain is the published iteration, which multiplies X by a + b·X·Xᵀ + c·(X·Xᵀ)².
func orthogonalPlain(x []float64, m, n int) []float64 {
	product := func(x, y []float64, m, k, n int) []float64 {
		z := make([]float64, m*n)
		for i := range m {
			for j := range n {
				for l := range k {
					z[i*n+j] += x[i*k+l] * y[l*n+j]
				}
			}
		}
		return z
	}
	norm := math.Sqrt(SumSquares(x)) + 1e-7
	for i := range x {
		x[i] /= norm
	}
	for range 5 {
		xt := make([]float64, m*n)
		for i := range m {
			for j := range n {
				xt[j*m+i] = x[i*n+j]
			}
		}
		gram := product(x, xt, m, n, m)
		poly := product(gram, gram, m, m, m)
		for i := range poly {
			poly[i] = -4.7750*gram[i] + 2.0315*poly[i]
		}
		next := product(poly, x, m, m, n)
		for i := range x {
			x[i] = 3.4445*x[i] + next[i]
		}
	}
	return x
}
