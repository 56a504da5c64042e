package layers_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// A fixture is a case computed by PyTorch. See testdata/fixtures.py and the other scripts there.
type fixture struct {
	Name   string
	Config struct {
		Bias, Causal, PostNorm      bool
		Gated, RMSNorm, Interleaved bool
		Shared, First, NoBias       bool
		Eps, Scale, Base, Smoothing float64
		Activation                  layers.Activation
		Loss                        string
		Delta                       float64
		Classes                     []float64
		Dim, Heads, Key, Value      int
		Rotary, Offset              int
		Buckets                     int
		MaxDistance                 int `json:"max_distance"`
		Scaling                     layers.RotaryScaling
		Experts                     *layers.ExpertsConfig
		Latent                      *layers.LatentConfig
	}
	Inputs, Params, Outputs, Weighting, Grads map[string]array
}

type array struct {
	Dtype string
	Shape []int
	Data  []*float64 // nil means −Inf
}

// as converts an array to a tensor. Floating-point numbers get the given dtype.
func (a array) as(dt tensor.Dtype) *tensor.Dense {
	f64 := make([]float64, len(a.Data))
	f32 := make([]float32, len(a.Data))
	ints := make([]int, len(a.Data))
	bools := make([]bool, len(a.Data))
	for i, v := range a.Data {
		f64[i] = math.Inf(-1)
		if v != nil {
			f64[i] = *v
		}
		f32[i], ints[i], bools[i] = float32(f64[i]), int(f64[i]), f64[i] == 1
	}
	switch {
	case a.Dtype == "int":
		return dense(ints, a.Shape...)
	case a.Dtype == "bool":
		return dense(bools, a.Shape...)
	case dt == tensor.Float32:
		return dense(f32, a.Shape...)
	}
	return dense(f64, a.Shape...)
}

func (a array) floats() []float64 {
	if len(a.Shape) == 0 {
		return []float64{*a.Data[0]}
	}
	return a.as(tensor.Float64).Float64s()
}

// A subject computes a fixture's outputs with Heed: it makes a layer and applies the layer to the inputs.
type subject func(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node

// TestPyTorch compares the layers' values and gradients with fixtures from PyTorch. The tolerance is 1e-10 in float64
// and 1e-5 in float32, relative to the largest magnitude in the tensor (see relative).
func TestPyTorch(t *testing.T) {
	for _, family := range []family{
		{"linear", linearSubject},
		{"embedding", embeddingSubject},
		{"norm", normSubject},
		{"activation", activationSubject},
		{"loss", lossSubject},
		{"elementwise_loss", elementwiseLossSubject},
		{"core", coreSubject},
		{"self_attention", multiHeadSubject},
		{"cross_attention", multiHeadSubject},
		{"encoder", encoderSubject},
		{"decoder", decoderSubject},
		{"masks", maskedSubject},
		{"torch_attention", multiHeadSubject},
		{"torch_layers", oneOfEachSubject},
		{"torch_transformer_post_norm", finalNormSubject},
		{"rmsnorm", rmsNormSubject},
		{"gated", gatedSubject},
		{"rotary", rotarySubject},
		{"rotary_scaled", rotarySubject},
		{"relative", relativeSubject},
		{"alibi", alibiSubject},
		{"gated_block", gatedBlockSubject},
		{"additive", additiveSubject},
		{"seq2seq", seq2seqSubject},
		{"classifier", classifierSubject},
		{"contrastive", contrastiveSubject},
		{"documents", maskedSubject},
		{"score", scoreSubject},
		{"experts", expertsSubject},
		{"gated_attention", gatedAttentionSubject},
		{"latent", latentSubject},
	} {
		family.compare(t, false)
	}
}

// TestPyTorchComposed is like TestPyTorch, but builds attention from separate ops.
func TestPyTorchComposed(t *testing.T) {
	for _, family := range []family{
		{"encoder", encoderSubject},
		{"decoder", decoderSubject},
		{"masks", maskedSubject},
		{"gated_block", gatedBlockSubject},
		{"relative", relativeSubject},
		{"documents", maskedSubject},
		{"score", scoreSubject},
		{"gated_attention", gatedAttentionSubject},
		{"latent", latentSubject},
	} {
		family.compare(t, true)
	}
}

// A family is a JSON file of fixtures and the subject that computes them.
type family struct {
	name    string
	subject subject
}

func (family family) compare(t *testing.T, composed bool) {
	for _, f := range load(t, family.name) {
		s := func(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
			b.Composed = composed
			return family.subject(t, f, p, b, inputs)
		}
		t.Run(family.name+"/"+f.Name+"/float64", func(t *testing.T) { compare(t, f, s, tensor.Float64, 1e-10) })
		t.Run(family.name+"/"+f.Name+"/float32", func(t *testing.T) { compare(t, f, s, tensor.Float32, 1e-5) })
	}
}

func load(t *testing.T, family string) []fixture {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("testdata", family+".json")))(t)
	var fixtures []fixture
	if err := json.Unmarshal(data, &fixtures); err != nil {
		t.Fatalf("%s: %v", family, err)
	}
	if len(fixtures) == 0 {
		t.Fatalf("%s: no cases", family)
	}
	return fixtures
}

// compare runs a fixture like a user's program: Forward, G.Grad and a TapeMachine.
func compare(t *testing.T, f fixture, s subject, dt tensor.Dtype, tol float64) {
	g := G.NewGraph()
	inputs := map[string]*G.Node{}
	for name, a := range f.Inputs {
		inputs[name] = input(g, "input "+name, a.as(dt))
	}
	p := must.Get(layers.NewParams(dt, 1))(t)
	b := &layers.Build{Training: true}
	outs := s(t, f, p, b, inputs)

	var cost *G.Node
	names := slices.Sorted(maps.Keys(f.Outputs))
	var nodes G.Nodes
	for _, name := range names {
		y := outs[name]
		nodes = append(nodes, y)
		c := y
		if !y.IsScalar() {
			c = weigh(t, y, input(g, "weighting "+name, f.Weighting[name].as(dt)))
		}
		if cost == nil {
			cost = c
		} else {
			cost = must.Get(G.Add(cost, c))(t)
		}
	}
	wrt := map[string]*G.Node{}
	for _, q := range p.All() {
		wrt[q.Name] = must.Get(b.Bind(g, q))(t)
	}
	for name, n := range inputs {
		if _, ok := f.Grads[name]; ok { // the weights of a loss have no gradient
			wrt[name] = n
		}
	}
	gradNames := slices.Sorted(maps.Keys(wrt))
	if want := slices.Sorted(maps.Keys(f.Grads)); !slices.Equal(gradNames, want) {
		t.Fatalf("got gradients of %v, but the fixture has gradients of %v", gradNames, want)
	}
	var ofWrt G.Nodes
	for _, name := range gradNames {
		ofWrt = append(ofWrt, wrt[name])
	}
	nodes = append(nodes, gradients(t, cost, ofWrt...)...)

	got := read(t, nodes...)
	for i, name := range names {
		relative(t, name, got[i], f.Outputs[name].floats(), tol)
	}
	for i, name := range gradNames {
		relative(t, "gradient of "+name, got[len(names)+i], f.Grads[name].floats(), tol)
	}
}

// relative reports an error if got and want differ by more than tol times the largest magnitude in want. Some
// gradients, such as the gradient of a key bias, are 0 except for rounding errors. For these gradients, the limit is
// tol.
func relative(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	if largest < 1e-13 {
		largest = 1
	}
	if len(got) != len(want) {
		t.Fatalf("%s: got %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= tol*largest) {
			t.Errorf("%s: element %d is %v, want %v: the difference is %.3g, the limit is %.3g", what, i, got[i], want[i], d, tol*largest)
			return
		}
	}
}

// fill sets every parameter to the fixture's values.
func (f fixture) fill(t *testing.T, p *layers.Params) {
	t.Helper()
	if len(p.All()) != len(f.Params) {
		t.Errorf("the layer has %d parameters, but the fixture has %d", len(p.All()), len(f.Params))
	}
	for _, q := range p.All() {
		a, ok := f.Params[q.Name]
		if !ok {
			t.Fatalf("the fixture has no parameter %q", q.Name)
		}
		if !q.Value.Shape().Eq(tensor.Shape(a.Shape)) {
			t.Fatalf("parameter %q has shape %v, but the fixture has shape %v", q.Name, q.Value.Shape(), a.Shape)
		}
		must.Do(t, tensor.Copy(q.Value, a.as(p.Dtype())))
	}
}
