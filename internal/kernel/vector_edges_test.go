package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestVectorSpecials tests NaN and infinities that must affect a result, and some that must not.
func TestVectorSpecials(t *testing.T) {
	eachBody(t, testSpecials[float32], testSpecials[float64])
}

func testSpecials[F Float](t *testing.T) {
	nan, inf := F(math.NaN()), F(math.Inf(1))
	same := func(x, y F) bool { return x == y || x != x && y != y }
	for special := range 40 { // index of the special value: in whole vectors and in the remainder
		row := func(base F, value F) []F {
			x := make([]F, 40)
			for i := range x {
				x[i] = base
			}
			x[special] = value
			return x
		}
		// A case has one special score, with its own weight and the weight of the other scores.
		for _, c := range []struct{ score, own, others F }{
			{nan, nan, nan}, {inf, nan, 0}, {-inf, 0, 1.0 / 39},
		} {
			w := row(7, 7)
			MaskedSoftmax(0, w, row(2, c.score), Mask[F]{Shape: [4]int{1, 1, 1, 40}})
			for i, v := range w {
				want := c.others
				if i == special {
					want = c.own
				}
				if !same(v, want) && math.Abs(float64(v-want)) > 1e-7 {
					t.Fatalf("softmax of 2s with %v at index %d is %v at index %d, want %v", c.score, special, v, i, want)
				}
			}
		}
		x, zero, one := row(1, nan), row(2, 0), row(1, 1)
		out := row(0, 0)
		ReLU(0, out, x)
		if !same(out[special], nan) || out[(special+1)%40] != 1 {
			t.Fatalf("ReLU gives %v, want NaN only at index %d", out, special)
		}
		for name, f := range map[string]func(cores int, out, x, y []F){"SkipMul": SkipMul[F], "GELUGrad": GELUGrad[F], "GELUTanhGrad": GELUTanhGrad[F],
			"SiLUGrad": SiLUGrad[F], "SoftcapGrad": func(cores int, dx, y, g []F) { SoftcapGrad(cores, dx, y, g, 3) }} {
			if f(0, out, x, zero); out[special] != 0 || out[(special+1)%40] == 0 {
				t.Fatalf("%s of NaN and 0 gives %v, want 0 only at index %d", name, out, special)
			}
			if f(0, out, x, one); !same(out[special], nan) || out[(special+1)%40] != out[(special+2)%40] {
				t.Fatalf("%s of NaN and 1 gives %v, want NaN only at index %d", name, out, special)
			}
		}
		if ReLUGrad(0, out, x, one); out[special] != 0 {
			t.Fatalf("ReLUGrad of NaN gives %v, want 0 at index %d", out, special)
		}
		if ReLUGrad(0, out, one, x); !same(out[special], nan) {
			t.Fatalf("ReLUGrad with a gradient of NaN gives %v, want NaN at index %d", out, special)
		}
		SoftmaxGrad(0, out, zero, x, 40) // a weight of 0 with a gradient of NaN
		for i, v := range out {
			if v != v || i == special && v != 0 {
				t.Fatalf("SoftmaxGrad gives %v, want no NaN, and 0 at index %d", out, special)
			}
		}
	}
}

// TestVectorAllocates checks that functions allocate nothing after their first calls, on one core or several.
func TestVectorAllocates(t *testing.T) {
	const n, w = 128, 256
	x, g, row := normals[float32](1, n*w), normals[float32](2, n*w), normals[float32](3, w)
	out, sums, sums2 := make([]float32, n*w), make([]float32, w), make([]float32, w)
	targets, losses, logSums, scales := make([]int, n), make([]float32, n), make([]float64, n), slices.Repeat([]float32{1}, n)
	list, parts := activations[float32](), make([]float64, DistanceTasks(n*w))
	for _, rows := range []int{1, n} {
		m := rows * w
		allocatesNothing(t, rows, func() {
			x, g, out := x[:m], g[:m], out[:m]
			Add(0, out, x, g)
			AddRow(0, out, row)
			SumRows(0, sums, x)
			SkipMul(0, out, x, g)
			SwapAxes(0, out, x, 1, rows, 8, w/8)
			for _, f := range list {
				f.value(0, out, x)
				f.grad(0, out, x, g)
			}
			RMSNorm(0, out, x, row, 1e-5)
			RMSNormGrad(0, out, sums, x, row, g, nil, 1e-5)
			MaskedSoftmax(0, out, x, Mask[float32]{Shape: [4]int{1, 1, rows, w}, Causal: true})
			SoftmaxGrad(0, out, x, g, w)
			LayerNorm(0, out, x, row, row, 1e-5)
			LayerNormGrad(0, out, sums, sums2, x, row, g, nil, 1e-5)
			CrossEntropy(0, losses[:rows], logSums, x, targets[:rows], w, 0.1)
			CrossEntropyGrad(0, out, logSums, x, targets[:rows], w, 0.1, scales)
			SumDistances(0, parts, HuberError, 0.5, x, g, scales[:rows], w)
			DistanceGrad(0, out, HuberError, 0.5, x, g, scales[:rows], w)
			DropoutMask(0, out, 0.5, 1, 2, 3)
			ScatterAdd(out, x, targets[:rows], w)
			AdamW(0, out, g, x, x, AdamStep{})
			SumSquares(x)
			SkipGemm(0, false, false, 8, 8, 8, 1, x, 8, x, 8, out, 8)
		})
	}
}
