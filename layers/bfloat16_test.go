package layers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// TestBFloat16Gradients compares gradients in bfloat16 with gradients in float64. Factors have 8 significant bits, so
// rounding changes them by up to 2⁻⁹ of their size, and the errors of several layers add up. The test also fails if the
// errors are as small as in float32.
func TestBFloat16Gradients(t *testing.T) {
	var cases []precisionCase
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", "precision.json")))(t), &cases))
	for i, c := range cases {
		if testseed.LeftOut(fmt.Sprint("model ", i)) {
			continue
		}
		half, got := c.gradients(t, uint64(i), tensor.Float32, layers.BFloat16)
		double, want := c.gradients(t, uint64(i), tensor.Float64, layers.Float32)
		if d := math.Abs(got - want); !(d <= 0x1p-9*want) || d == 0 {
			t.Errorf("model %d: the loss is %v, want about %v", i, got, want)
		}
		for name, want := range double {
			size, least := largest(double[strings.ReplaceAll(name, "key.bias", "query.bias")], nil), 0x1p-12
			if strings.HasSuffix(name, "key.bias") { // all elements are 0, because it adds the same number to each score of a row
				least = 0
			}
			if d := largest(half[name], want) / size; !(d >= least && d <= 0x1p-4) {
				t.Errorf("model %d: the error of the gradient of %s is %.3g of the largest element, want from %v to %v", i, name, d, least, 0x1p-4)
			}
		}
	}
}

// rounded returns x, rounded to 8 significant bits.
func rounded(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		fraction, exponent := math.Frexp(v)
		out[i] = math.Ldexp(math.RoundToEven(math.Ldexp(fraction, 8)), exponent-8)
	}
	return out
}

// multiply returns the sum of x[i·a + p·b]·y[j·c + p·d] over p, for all i and j.
func multiply(x, y []float64, rows, cols, terms, a, b, c, d int) []float64 {
	out := make([]float64, rows*cols)
	for i := range rows {
		for j := range cols {
			for p := range terms {
				out[i*cols+j] += x[i*a+p*b] * y[j*c+p*d]
			}
		}
	}
	return out
}

// TestBFloat16Linear compares a linear layer and its gradients with products of rounded factors. Sums aren't rounded.
func TestBFloat16Linear(t *testing.T) {
	const n, in, out = 5, 37, 9
	g, b := G.NewGraph(), &layers.Build{Training: true, Precision: layers.BFloat16}
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	l := must.Get(layers.NewLinear(p, in, out, layers.LinearConfig{}))(t)
	x, weights := as(tensor.Float32, random(2, n, in)), as(tensor.Float32, random(3, n, out))
	xNode := input(g, "x", x)
	y := must.Get(l.Forward(b, xNode))(t)
	got := read(t, append(G.Nodes{y}, gradients(t, weigh(t, y, input(g, "weights", weights)), append(G.Nodes{xNode}, b.Learnables()...)...)...)...)

	rx, rw, rg := rounded(floats(t, x)), rounded(floats(t, l.Weight.Value)), rounded(floats(t, weights))
	near(t, "output", got[0], multiply(rx, rw, n, out, in, in, 1, in, 1), 1e-5)
	near(t, "gradient of x", got[1], multiply(rg, rw, n, in, out, out, 1, 1, in), 1e-5)
	near(t, "gradient of the weight", got[2], multiply(rg, rx, out, in, n, 1, out, 1, in), 1e-5)
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	near(t, "gradient of the bias", got[3], multiply(floats(t, weights), ones, out, 1, n, 1, out, 0, 1), 1e-5)
}

// TestBFloat16Adapter compares a Linear with a low-rank product to products of rounded factors. The product with A is
// a factor of the product with B, so it is rounded too.
func TestBFloat16Adapter(t *testing.T) {
	const n, in, out, rank = 6, 20, 9, 3
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	l := must.Get(layers.NewLinear(p.Scope("a"), in, out, layers.LinearConfig{NoBias: true}))(t)
	a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: rank, Alpha: 2 * rank}, 1))(t)
	factor := func(name string, shape ...int) []float64 {
		v := a.Params.Get(name).Value
		copy(v.Float32s(), as(tensor.Float32, random(uint64(len(name)+shape[0]), shape...)).Float32s())
		return rounded(floats(t, v))
	}
	first, second := factor("a.lora_a", rank, in), factor("a.lora_b", out, rank)
	x := as(tensor.Float32, random(2, n, in))
	got := read(t, must.Get(l.Forward(&layers.Build{Adapter: a, Precision: layers.BFloat16}, input(G.NewGraph(), "x", x)))(t))[0]

	rx := rounded(floats(t, x))
	want := multiply(rx, rounded(floats(t, l.Weight.Value)), n, out, in, in, 1, in, 1)
	for i, v := range multiply(rounded(multiply(rx, first, n, rank, in, in, 1, in, 1)), second, n, out, rank, rank, 1, rank, 1) {
		want[i] += 2 * v
	}
	near(t, "output", got, want, 1e-5)
}

// TestBFloat16Head compares the fused loss of a head with the composed one, whose products have the same factors up to
// float32's rounding. It may change which bfloat16 is nearest, so the limit of the gradients is bfloat16's error.
func TestBFloat16Head(t *testing.T) {
	const n, dim, vocab = 40, 48, 70
	run := func(b layers.Build) [][]float64 {
		g := G.NewGraph()
		b.Training = true
		p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
		head := must.Get(layers.NewLinear(p, dim, vocab, layers.LinearConfig{}))(t)
		states, targets := input(g, "states", as(tensor.Float32, random(2, n, dim))), make([]int, n)
		for i := range targets {
			targets[i] = (i*i + 1) % vocab
		}
		targets[3] = layers.Ignore
		loss, _, err := layers.HeadCrossEntropy(&b, states, head, 0, input(g, "targets", dense(targets, n)), layers.CrossEntropyOptions{})
		must.Do(t, err)
		return read(t, append(G.Nodes{loss.Mean}, gradients(t, loss.Mean, append(G.Nodes{states}, b.Learnables()...)...)...)...)
	}
	full := run(layers.Build{})
	fused, composed := run(layers.Build{Precision: layers.BFloat16}), run(layers.Build{Precision: layers.BFloat16, Composed: true})
	for i, what := range []string{"loss", "gradient of the states", "gradient of the weight", "gradient of the bias"} {
		size := largest(full[i], nil)
		if d := largest(fused[i], composed[i]) / size; !(d <= 0x1p-10) {
			t.Errorf("%s: the forms differ by %.3g of the largest element, want at most 2⁻¹⁰", what, d)
		}
		if d := largest(fused[i], full[i]) / size; !(d > 0x1p-16 && d <= 0x1p-6) {
			t.Errorf("%s: float32 differs by %.3g of the largest element, want from 2⁻¹⁶ to 2⁻⁶", what, d)
		}
	}
}

func TestPrecisionErrors(t *testing.T) {
	l := must.Get(layers.NewLinear(newParams(t), 3, 2, layers.LinearConfig{}))(t)
	for want, b := range map[string]*layers.Build{
		"precision bfloat16 needs float32 inputs and parameters, got float64: make the parameters float32": {Precision: layers.BFloat16},
		"there is no precision 7: use one of float32, bfloat16":                                            {Precision: 7},
	} {
		must.Refuse(l.Forward(b, input(G.NewGraph(), "x", random(1, 2, 3))))(t, want)
	}
	var p layers.Precision
	if err := p.UnmarshalText([]byte("bfloat61")); err == nil || !strings.Contains(err.Error(), `did you mean bfloat16?`) {
		t.Errorf("got the error %v, want a suggestion", err)
	}
	if got := fmt.Sprint(layers.BFloat16, layers.Precision(-1)); got != "bfloat16 precision -1" {
		t.Errorf("got %q", got)
	}
}
