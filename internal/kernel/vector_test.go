package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestArithmeticOfEachBody runs tests of exported functions with each instruction set. On their own, these tests use
// only the best one.
func TestArithmeticOfEachBody(t *testing.T) {
	testseed.Proof(t)
	eachSet(t, func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"masked softmax": TestMaskedSoftmax, "softmax is stable": TestSoftmaxIsStable, "softmax's gradient": TestSoftmaxGrad,
			"sum broadcast": TestSumBroadcast, "layer norm": TestLayerNorm,
			"bits": TestBitsDoNotDependOnCores, "edges": TestActivationsAtTheEdges, "dropout": TestDropoutMask,
			"skip product": TestSkipGemm, "softcap": TestSoftcap, "softcap's edges": TestSoftcapAtTheEdges,
			"activations": TestActivations, "gate": TestGate, "rms norm": TestRMSNorm,
			"rms norm's edges": TestRMSNormAtTheEdges, "rotate": TestRotate,
		} {
			t.Run(name, test)
		}
	})
}

// operands returns slices that end where readable memory ends, so that an access past the end faults.
type operands[F Float] struct {
	arenas []*arena[F]
	used   int
	seed   uint64
}

// random returns n random numbers, some of them 0.
func (o *operands[F]) random(t *testing.T, n int) []F {
	if o.used == len(o.arenas) {
		o.arenas = append(o.arenas, newArena[F](t))
	}
	x := o.arenas[o.used].take(n, 0)
	o.used++
	o.seed++
	copy(x, normals[F](o.seed, n))
	for i := range x {
		if (i+int(o.seed))%5 == 0 {
			x[i] = 0
		}
	}
	return x
}

// intact fails if something was written before the slices. Then it makes all slices available again.
func (o *operands[F]) intact(t *testing.T, what string) {
	t.Helper()
	for _, a := range o.arenas[:o.used] {
		if !a.intact() {
			t.Fatalf("%s: something was written before a slice", what)
		}
	}
	o.used = 0
}

// wide returns x in float64.
func wide[F Float](x []F) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// TestVectorElementwise compares elementwise functions with their formulas in float64, for every length up to 100.
func TestVectorElementwise(t *testing.T) {
	eachBody(t, func(t *testing.T) { testElementwise[float32](t, 5e-7) }, func(t *testing.T) { testElementwise[float64](t, 4e-15) })
}

func testElementwise[F Float](t *testing.T, tol float64) {
	body := bodyOf[F]()
	pick := func(yes bool, x float64) float64 {
		if yes {
			return x
		}
		return 0
	}
	cases := []struct {
		name string
		run  func(out, x, y []F)
		want func(x, y float64) float64
	}{
		{"add", body.add, func(x, y float64) float64 { return x + y }},
		{"skipMul", body.skipMul, func(x, y float64) float64 { return pick(y != 0, x*y) }},
		{"mul", body.mul, func(x, y float64) float64 { return x * y }},
		{"silu", func(out, x, _ []F) { body.silu(out, x) }, func(x, _ float64) float64 { return silu(x) }},
		{"silu in place", func(out, x, _ []F) { copy(out, x); body.silu(out, out) }, func(x, _ float64) float64 { return silu(x) }},
		{"siluGrad", body.siluGrad, func(x, g float64) float64 { return g * siluSlope(x) }},
		{"softcap", func(out, x, _ []F) { body.softcap(out, x, 1.5) }, func(x, _ float64) float64 { return 1.5 * math.Tanh(x/1.5) }},
		{"softcapGrad", func(out, x, g []F) { body.softcapGrad(out, x, g, 1.5) }, func(x, g float64) float64 { return g * (1 - x*x/2.25) }},
		{"relu", func(out, x, _ []F) { body.relu(out, x) }, func(x, _ float64) float64 { return max(x, 0) }},
		{"reluGrad", body.reluGrad, func(x, g float64) float64 { return pick(x > 0, g) }},
		{"gelu", func(out, x, _ []F) { body.gelu(out, x) }, func(x, _ float64) float64 { return gelu(x) }},
		{"geluGrad", body.geluGrad, func(x, g float64) float64 { return g * geluSlope(x) }},
		{"geluTanh", func(out, x, _ []F) { body.geluTanh(out, x) }, func(x, _ float64) float64 { return geluTanh(x) }},
		{"geluTanhGrad", body.geluTanhGrad, func(x, g float64) float64 { return g * geluTanhSlope(x) }},
		{"scale", func(out, x, _ []F) { copy(out, x); body.scale(out, 1.5) }, func(x, _ float64) float64 { return 1.5 * x }},
		{"axpy", func(out, x, y []F) { copy(out, x); body.axpy(out, y, -2.5) }, func(x, y float64) float64 { return x - 2.5*y }},
		{"expShift", func(out, x, _ []F) { body.expShift(out, x, 0.5) }, func(x, _ float64) float64 { return math.Exp(x - 0.5) }},
		{"expShift in place", func(out, x, _ []F) { copy(out, x); body.expShift(out, out, 0.5) }, func(x, _ float64) float64 { return math.Exp(x - 0.5) }},
	}
	var o operands[F]
	for n := range 101 {
		for _, c := range cases {
			out, x, y := o.random(t, n), o.random(t, n), o.random(t, n)
			want := wide(x)
			for i, v := range want {
				want[i] = c.want(v, float64(y[i]))
			}
			c.run(out, x, y)
			what := fmt.Sprintf("%s of %d", c.name, n)
			closeTo(t, what, out, want, tol)
			o.intact(t, what)
		}
	}
}

// TestVectorSums compares sums and searches with plain loops, for every length up to 100.
func TestVectorSums(t *testing.T) {
	eachBody(t, func(t *testing.T) { testSums[float32](t, 2e-6) }, func(t *testing.T) { testSums[float64](t, 1e-14) })
}

func testSums[F Float](t *testing.T, tol float64) {
	body := bodyOf[F]()
	var o operands[F]
	for n := range 101 {
		x, y, e := o.random(t, n), o.random(t, n), o.random(t, n)
		what := fmt.Sprintf("%d elements", n)
		var dot, squares, exps float64
		largest := math.Inf(-1)
		for i, v := range wide(x) {
			dot += v * float64(y[i])
			squares += v * v
			exps += math.Exp(v - 0.25)
			largest = max(largest, v)
		}
		sum := body.expShift(e, x, 0.25)
		if first, second := body.dots(x, y, x); first != body.dot(x, y) || second != body.dot(x, x) {
			t.Fatalf("%s: two dot products are %v and %v, want %v and %v", what, first, second, body.dot(x, y), body.dot(x, x))
		}
		got := []float64{float64(body.dot(x, y)), body.sumSquares(x), float64(sum), float64(body.expSum(x, 0.25))}
		closeTo(t, what, got, []float64{dot, squares, exps, exps}, tol)
		if m := float64(body.maxOf(x)); m != largest {
			t.Fatalf("%s: the largest is %v, want %v", what, m, largest)
		}
		for i := range x {
			x[i] = -1 - x[i]*x[i] // negative, so a 0 from past the end would be the largest
		}
		if m := body.maxOf(x); n > 0 && m != slices.Max(x) || body.hasNaN(x) {
			t.Fatalf("%s: the largest is %v, want %v", what, m, slices.Max(x))
		}
		for i, v := range x {
			for _, special := range []float64{math.Inf(1), math.NaN()} {
				x[i] = F(special)
				if m := float64(body.maxOf(x)); m != special && m == m || body.hasNaN(x) == (special == special) {
					t.Fatalf("%s: with %v at index %d, the largest is %v and hasNaN is %t, want %[2]v and %[6]t", what, special, i, m, body.hasNaN(x), special != special)
				}
			}
			x[i] = v
		}
		o.intact(t, what)
	}
}

// TestVectorRows compares functions on rows with plain loops, for every width up to 70 and some larger ones.
func TestVectorRows(t *testing.T) {
	eachBody(t, func(t *testing.T) { testRows[float32](t, 3e-6) }, func(t *testing.T) { testRows[float64](t, 1e-14) })
}

func testRows[F Float](t *testing.T, tol float64) {
	body := bodyOf[F]()
	inGo := vectorPortable[float64]()
	var o operands[F]
	widths := []int{100, 128, 129, 255}
	for w := 1; w <= 70; w++ {
		widths = append(widths, w)
	}
	for _, w := range widths {
		const rows = 3
		check := func(what string, got []F, want []float64, tol float64) {
			t.Helper()
			closeTo(t, fmt.Sprintf("%s, width %d", what, w), got, want, tol)
		}
		m, row, sum := o.random(t, rows*w), o.random(t, w), o.random(t, w)
		want, total := wide(m), make([]float64, w)
		for i := range want {
			want[i] += float64(row[i%w])
			total[i%w] += want[i]
		}
		body.addRow(m, row, rows)
		check("addRow", m, want, tol)
		body.sumRows(sum, m, rows, w)
		check("sumRows", sum, total, tol)
		half := w/2 + 1
		body.sumRows(sum[:w-half], m[half:], rows, w)
		check("sumRows of some columns", sum[:w-half], total[half:], tol)
		o.intact(t, "rows")

		dst, src := o.random(t, 2*(w+3)+w), o.random(t, 2*(w+1)+w)
		copied := wide(dst)
		for r := range 3 {
			copy(copied[r*(w+3):][:w], wide(src[r*(w+1):][:w]))
		}
		body.copyRows(dst, src, 3, w, w+3, w+1)
		check("copyRows", dst, copied, 0)
		o.intact(t, "copyRows")

		scores, weights, ds, g := o.random(t, w), o.random(t, w), o.random(t, rows*w), o.random(t, rows*w)
		ref := make([]float64, w)
		inGo.softmax(ref, wide(scores))
		body.softmax(weights, scores)
		check("softmax", weights, ref, tol)
		p := o.random(t, rows*w)
		refs := make([]float64, rows*w)
		inGo.softmaxGrad(refs, wide(p), wide(g), w)
		body.softmaxGrad(ds, p, g, w)
		check("softmaxGrad", ds, refs, tol)
		o.intact(t, "softmax")

		x, gamma, beta, y, dx := o.random(t, rows*w), o.random(t, w), o.random(t, w), o.random(t, rows*w), o.random(t, rows*w)
		g = o.random(t, rows*w)
		clear(g[w : 2*w])
		dgamma, dbeta := o.random(t, w), o.random(t, w)
		for _, beta := range [][]F{beta, nil} {
			inGo.layerNorm(refs, wide(x), wide(gamma), wide(beta), float64(w), 0.01, rows)
			body.layerNorm(y, x, gamma, beta, F(w), 0.01, rows)
			check("layerNorm", y, refs, 2*tol)
		}
		x[w] = F(math.NaN()) // in a row without a gradient
		refGamma, refBeta := wide(dgamma), wide(dbeta)
		inGo.layerNormGrad(refs, refGamma, refBeta, wide(x), wide(gamma), wide(g), float64(w), 0.01, rows)
		body.layerNormGrad(dx, dgamma, dbeta, x, gamma, g, F(w), 0.01, rows)
		check("layerNormGrad: dx", dx, refs, 20*tol)
		check("layerNormGrad: dgamma", dgamma, refGamma, 2*tol)
		check("layerNormGrad: dbeta", dbeta, refBeta, 2*tol)
		o.intact(t, "layerNorm")

		x, gamma, y, dx, dgamma = o.random(t, rows*w), o.random(t, w), o.random(t, rows*w), o.random(t, rows*w), o.random(t, w)
		g = o.random(t, rows*w)
		clear(g[w : 2*w])
		inGo.rmsNorm(refs, wide(x), wide(gamma), float64(w), 0.01, rows)
		body.rmsNorm(y, x, gamma, F(w), 0.01, rows)
		check("rmsNorm", y, refs, 2*tol)
		x[w] = F(math.NaN()) // in a row without a gradient
		refGamma = wide(dgamma)
		inGo.rmsNormGrad(refs, refGamma, wide(x), wide(gamma), wide(g), float64(w), 0.01, rows)
		body.rmsNormGrad(dx, dgamma, x, gamma, g, F(w), 0.01, rows)
		check("rmsNormGrad: dx", dx, refs, 20*tol)
		check("rmsNormGrad: dgamma", dgamma, refGamma, 2*tol)
		o.intact(t, "rmsNorm")

		for _, stride := range []int{2 * w, 2*w + 3} {
			n := (rows-1)*stride + 2*w
			x, y, cos, sin := o.random(t, n), o.random(t, n), o.random(t, w), o.random(t, w)
			for _, turn := range []struct {
				name  string
				run   func(y, x, cos, sin []F, sign F, rows, stride int)
				check func(y, x, cos, sin []float64, sign float64, rows, stride int)
			}{{"rotate", body.rotate, inGo.rotate}, {"rotatePairs", body.rotatePairs, inGo.rotatePairs}} {
				for _, sign := range []float64{1, -1} {
					turned := wide(y)
					turn.check(turned, wide(x), wide(cos), wide(sin), sign, rows, stride)
					turn.run(y, x, cos, sin, F(sign), rows, stride)
					check(turn.name, y, turned, tol)
				}
			}
			o.intact(t, "rotate")
		}
	}
}
