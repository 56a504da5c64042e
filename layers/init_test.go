package layers_test

import (
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestInitialisers checks mean, standard deviation and limits over many draws, in both dtypes.
func TestInitialisers(t *testing.T) {
	const out, in = 200, 400
	for _, tc := range []struct {
		name      string
		init      layers.Init
		mean, std float64
		limit     float64 // 0 for none
	}{
		{"zeros", layers.Zeros(), 0, 0, 0},
		{"ones", layers.Ones(), 1, 0, 0},
		{"normal", layers.Normal(0.3), 0, 0.3, 0},
		{"uniform", layers.Uniform(0.3), 0, 0.3 / math.Sqrt(3), 0.3},
		{"xavier uniform", layers.XavierUniform(), 0, math.Sqrt(2.0 / (in + out)), math.Sqrt(6.0 / (in + out))},
		{"xavier normal", layers.XavierNormal(), 0, math.Sqrt(2.0 / (in + out)), 0},
		{"he uniform", layers.HeUniform(), 0, math.Sqrt(2.0 / in), math.Sqrt(6.0 / in)},
		{"he normal", layers.HeNormal(), 0, math.Sqrt(2.0 / in), 0},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			p := must[*layers.Params](t)(layers.NewParams(dt, 3))
			w := must[*layers.Param](t)(p.New("w", tc.init, out, in))
			var sum, squares, most float64
			x := floats(t, w.Value)
			for _, v := range x {
				sum += v
				squares += (v - tc.mean) * (v - tc.mean)
				most = max(most, math.Abs(v))
			}
			n := float64(len(x))
			if d := math.Abs(sum/n - tc.mean); d > 5*tc.std/math.Sqrt(n) {
				t.Errorf("%s, %v: the mean is %v, want %v", tc.name, dt, sum/n, tc.mean)
			}
			if std := math.Sqrt(squares / n); math.Abs(std-tc.std) > 0.02*tc.std {
				t.Errorf("%s, %v: the standard deviation is %v, want %v", tc.name, dt, std, tc.std)
			}
			if tc.limit > 0 && (most > tc.limit*(1+1e-6) || most < 0.99*tc.limit) {
				t.Errorf("%s, %v: the largest is %v, want close below %v", tc.name, dt, most, tc.limit)
			}
		}
	}
}

// TestSinusoidalPositions compares with the formula of the paper.
func TestSinusoidalPositions(t *testing.T) {
	for _, dim := range []int{1, 6, 7} {
		c := newBench(t)
		y := c.node(layers.Sinusoidal{}.Embed(c.b, input(c.g, "x", dense(make([]float64, 2*5*dim), 2, 5, dim)), nil))
		z := c.node(layers.Sinusoidal{Base: 50}.Embed(c.b, input(c.g, "x", dense(make([]float64, 2*5*dim), 2, 5, dim)), nil))
		for i, base := range []float64{10000, 50} {
			want := make([]float64, 2*5*dim)
			for k := range want {
				pos, axis := k/dim%5, k%dim
				angle := float64(pos) / math.Pow(base, float64(2*(axis/2))/float64(dim))
				want[k] = math.Sin(angle)
				if axis%2 == 1 {
					want[k] = math.Cos(angle)
				}
			}
			near(t, "waves", read(t, y, z)[i], want, 1e-14)
		}
	}
}
