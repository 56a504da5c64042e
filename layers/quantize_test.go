package layers_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// newFloats returns an empty set of float32 parameters.
func newFloats(t testing.TB) *layers.Params {
	return must.Get(layers.NewParams(tensor.Float32, 1))(t)
}

// roundInt8 replaces the rows of a matrix by what the documentation of Quantize says.
func roundInt8(q *layers.Param) {
	for row := range slices.Chunk(q.Value.Float32s(), q.Value.Shape()[1]) {
		largest := 0.0
		for _, x := range row {
			largest = max(largest, math.Abs(float64(x)))
		}
		scale := float32(largest / 127)
		for i, x := range row {
			row[i] = float32(math.RoundToEven(float64(x)/float64(scale))) * scale
		}
	}
}

// quantizedModels lists decoders with the parameters that become int8. Without biases, three Linears of a block have
// equal inputs and shapes, and Gorgonia must not merge them.
var quantizedModels = map[string]struct {
	config layers.ModelConfig
	kept   []string // parameters with two axes that stay float32
}{
	"own head": {layers.ModelConfig{Vocab: 9, Dim: 8, Layers: 2, NoBias: true, Positions: layers.Learned{MaxLen: 6}, Block: layers.BlockConfig{
		Attention:   layers.AttentionConfig{Heads: 2, NoBias: true},
		FeedForward: layers.FeedForwardConfig{Hidden: 40, Gated: true, NoBias: true, Activation: layers.SiLU}}}, []string{"embedding.weight", "positions.weight"}},
	"tied": {layers.ModelConfig{Vocab: 9, Dim: 8, Layers: 2, Tied: true, TiedBias: true, Positions: layers.Rotary{}, Transform: &layers.TransformConfig{Activation: layers.GELU, Norm: true},
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}}, nil},
}

// TestQuantize compares models that Quantize has changed with models whose weights were rounded, in their outputs and
// their loss.
func TestQuantize(t *testing.T) {
	ids, targets := []int{1, 8, 0, 3, 3, 2, 7, 5}, []int{8, 0, 3, 3, 2, 7, 5, 1}
	for name, m := range quantizedModels {
		t.Run(name, func(t *testing.T) {
			results := func(change func(p *layers.Params)) (logits, loss []float64) {
				p := newFloats(t)
				d := must.Get(layers.NewDecoder(p, m.config))(t)
				for i, q := range p.All() {
					copy(q.Value.Float32s(), as(tensor.Float32, random(uint64(i), q.Value.Shape()...)).Float32s())
				}
				before := p.Summary()
				change(p)
				if after := p.Summary(); after != before {
					t.Errorf("the summary became\n%s", after)
				}
				g, b := G.NewGraph(), &layers.Build{}
				states := must.Get(d.States(b, input(g, "ids", dense(slices.Clone(ids), 2, 4)), layers.Mask{}))(t)
				cost, _, err := d.CrossEntropy(b, states, input(g, "targets", dense(slices.Clone(targets), 2, 4)), layers.CrossEntropyOptions{})
				must.Do(t, err)
				out := must.Get(d.Forward(b, g.ByName("ids")[0], layers.Mask{}))(t)
				got := read(t, out, cost.Mean)
				return got[0], got[1]
			}
			wantLogits, wantLoss := results(func(p *layers.Params) {
				for _, q := range p.All() {
					if q.Value.Dims() == 2 && !slices.Contains(m.kept, q.Name) {
						roundInt8(q)
					}
				}
			})
			logits, loss := results(func(p *layers.Params) {
				must.Do(t, p.Quantize())
				must.Do(t, p.Quantize()) // changes nothing
			})
			for i, x := range slices.Concat(logits, loss) {
				if want := slices.Concat(wantLogits, wantLoss)[i]; !(math.Abs(x-want) <= 2e-3) {
					t.Errorf("result %d is %v, want %v", i, x, want)
				}
			}
			whole, _ := results(func(*layers.Params) {})
			if slices.Equal(whole, wantLogits) {
				t.Error("rounding the weights changes nothing")
			}
		})
	}
}

// TestQuantizedAdapter adds a low-rank product to int8 weights.
func TestQuantizedAdapter(t *testing.T) {
	results := func(change func(p *layers.Params, l *layers.Linear)) []float64 {
		p := newFloats(t)
		l := must.Get(layers.NewLinear(p.Scope("a"), 5, 3, layers.LinearConfig{}))(t)
		copy(l.Bias.Value.Float32s(), []float32{1, 2, 3})
		a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 2}, 1))(t)
		for i, q := range a.Params.All() {
			copy(q.Value.Float32s(), as(tensor.Float32, random(uint64(i), q.Value.Shape()...)).Float32s())
		}
		change(p, l)
		return read(t, must.Get(l.Forward(&layers.Build{Adapter: a}, input(G.NewGraph(), "x", as(tensor.Float32, random(9, 4, 5)))))(t))[0]
	}
	want := results(func(_ *layers.Params, l *layers.Linear) { roundInt8(l.Weight) })
	for i, x := range results(func(p *layers.Params, _ *layers.Linear) { must.Do(t, p.Quantize()) }) {
		if math.Abs(x-want[i]) > 1e-3 {
			t.Errorf("output %d is %v, want %v", i, x, want[i])
		}
	}
}

func TestQuantizeErrors(t *testing.T) {
	must.Fail(t, newParams(t).Quantize(), "float32", "got float64")
	must.Refuse(layers.NewLinear(newParams(t).BlankInt8(), 5, 3, layers.LinearConfig{}))(t, `"weight"`, "only float32 weights can become int8, got float64")

	p := newFloats(t)
	l := must.Get(layers.NewLinear(p.Scope("a"), 5, 3, layers.LinearConfig{}))(t)
	other := must.Get(layers.NewLinear(p.Scope("b"), 5, 3, layers.LinearConfig{}))(t)
	a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 2}, 1))(t)
	snapshot := p.Snapshot()
	other.Weight.Value.Float32s()[7] = float32(math.NaN())
	must.Fail(t, p.Quantize(), `"b.weight"`, "got NaN in row 1 and column 2")
	if len(l.Weight.Value.Float32s()) != 15 {
		t.Error("Quantize changed a parameter before its error")
	}
	must.Do(t, p.Restore(snapshot))
	must.Do(t, p.Quantize())
	if n := len(l.Weight.Value.Float32s()); n > 1 {
		t.Errorf("the weights still have %d float32 values", n)
	}
	in := func() *G.Node { return input(G.NewGraph(), "x", as(tensor.Float32, random(9, 4, 5))) }
	must.Refuse(l.Forward(&layers.Build{Training: true}, in()))(t, `"a.weight"`, "can't be trained")
	must.Refuse((&layers.Build{}).Bind(G.NewGraph(), l.Weight))(t, `"a.weight"`, "only a Linear and an Embedding")
	x := in()
	sum := must.Get(G.Sum(must.Get(l.Forward(&layers.Build{}, x))(t)))(t)
	must.Refuse(G.Grad(sum, x))(t, "no gradients through int8 weights")
	const only = "has only int8 values since Quantize"
	must.Fail(t, p.SaveTo(new(strings.Builder), nil), `"a.weight"`, only)
	must.Fail(t, p.Restore(snapshot), only)
	must.Fail(t, a.Merge(p), only)
	must.Fail(t, p.SaveTensors(t.TempDir()+"/weights", layers.PyTorch(p), nil), only)
}

// TestBlankInt8 loads weights that become int8 while they are loaded, and compares the model with one that Quantize has
// changed. One tensor of the file holds three parameters.
func TestBlankInt8(t *testing.T) {
	config := quantizedModels["tied"].config
	p := newFloats(t)
	d := must.Get(layers.NewDecoder(p, config))(t)
	path := filepath.Join(t.TempDir(), "weights")
	table := []layers.Tensor{{Names: []string{"joined"}, Params: []string{"blocks.0.attention.query.weight", "blocks.0.attention.key.weight", "blocks.0.attention.value.weight"}}}
	for _, q := range p.All() {
		if !slices.Contains(table[0].Params, q.Name) {
			table = append(table, layers.Tensor{Names: []string{q.Name}, Params: []string{q.Name}})
		}
	}
	must.Do(t, p.SaveTensors(path, table, nil))
	must.Do(t, p.Quantize())

	loaded := newFloats(t)
	other := must.Get(layers.NewDecoder(loaded.BlankInt8(), config))(t)
	must.Get(loaded.Load(path, layers.LoadOptions{Tensors: table}))(t)
	for _, q := range loaded.All() {
		if kept := len(q.Value.Float32s()) > 1; q.Value.Dims() == 2 && kept {
			t.Errorf("%s still has float32 values", q.Name)
		}
	}
	logits := func(d *layers.Decoder) []float64 {
		return read(t, must.Get(d.Forward(&layers.Build{}, input(G.NewGraph(), "ids", dense([]int{1, 8, 0, 3}, 1, 4)), layers.Mask{}))(t))[0]
	}
	if got, want := logits(other), logits(d); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
