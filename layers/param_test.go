package layers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// Freeze excludes the embeddings and the first block of an encoder from training.
func ExampleParams_Freeze() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	_, err = layers.NewEncoder(params, layers.ModelConfig{
		Vocab: 10, Dim: 4, Layers: 2, Outputs: 3, Positions: layers.Rotary{},
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, NoBias: true}, FeedForward: layers.FeedForwardConfig{Hidden: 6, NoBias: true}},
	})
	check(err)
	check(params.Freeze("embedding", "blocks.0"))
	fmt.Print(params.Summary())
	// Output:
	// embedding.weight                  (10, 4)  40  frozen
	// norm.weight                       (4)      4
	// norm.bias                         (4)      4
	// head.weight                       (3, 4)   12
	// head.bias                         (3)      3
	// blocks.0.attention.query.weight   (4, 4)   16  frozen
	// blocks.0.attention.key.weight     (4, 4)   16  frozen
	// blocks.0.attention.value.weight   (4, 4)   16  frozen
	// blocks.0.attention.output.weight  (4, 4)   16  frozen
	// blocks.0.feedforward.up.weight    (6, 4)   24  frozen
	// blocks.0.feedforward.down.weight  (4, 6)   24  frozen
	// blocks.0.norm1.weight             (4)      4   frozen
	// blocks.0.norm1.bias               (4)      4   frozen
	// blocks.0.norm2.weight             (4)      4   frozen
	// blocks.0.norm2.bias               (4)      4   frozen
	// blocks.1.attention.query.weight   (4, 4)   16
	// blocks.1.attention.key.weight     (4, 4)   16
	// blocks.1.attention.value.weight   (4, 4)   16
	// blocks.1.attention.output.weight  (4, 4)   16
	// blocks.1.feedforward.up.weight    (6, 4)   24
	// blocks.1.feedforward.down.weight  (4, 6)   24
	// blocks.1.norm1.weight             (4)      4
	// blocks.1.norm1.bias               (4)      4
	// blocks.1.norm2.weight             (4)      4
	// blocks.1.norm2.bias               (4)      4
	// all                               float32  319  168 frozen
}

// TestSnapshot checks that changes of the parameters don't change a snapshot, and that Restore copies the snapshot into
// the parameters' memory.
func TestSnapshot(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p := newWeights(t, dtype, 1)
		before, memory := weightBits(p), p.Get("part.cube").Value.Uintptr()
		snapshot := p.Scope("part").Snapshot()
		for _, q := range p.All() {
			q.Value.Zero()
		}
		must.Do(t, p.Restore(snapshot))
		if !sameWeights(weightBits(p), before) || p.Get("part.cube").Value.Uintptr() != memory {
			t.Errorf("%v: the values differ from the snapshot, or the tensor has new memory", dtype)
		}
		p.All()[0].Value.Zero()
		if err := p.Restore(snapshot); err != nil || !sameWeights(weightBits(p), before) {
			t.Errorf("%v: after a second Restore the values differ from the snapshot (error %v)", dtype, err)
		}
	}
}

// TestRestoreRefuses checks that Restore returns an error for values that don't fit, and changes no parameter.
func TestRestoreRefuses(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	for _, name := range []string{"a", "b"} {
		must.Get(p.New(name, layers.Normal(1), 2, 3))(t)
	}
	before := weightBits(p)
	with := func(b *tensor.Dense) []*tensor.Dense { return []*tensor.Dense{dense(make([]float32, 6), 2, 3), b} }
	transposed := dense(make([]float32, 6), 3, 2)
	must.Do(t, transposed.T())
	for _, test := range []struct {
		snapshot []*tensor.Dense
		want     string
	}{
		{nil, "must have 2 values, got 0"},
		{append(with(nil), nil), "must have 2 values, got 3"},
		{with(dense(make([]float64, 6), 2, 3)), `the snapshot: parameter "b" must be a contiguous row-major tensor of float32`},
		{with(transposed), `the snapshot: parameter "b" must be a contiguous row-major tensor of float32`},
		{with(dense(make([]float32, 6), 3, 2)), `the snapshot: parameter "b" must have shape (2, 3), got (3, 2)`},
		{with(dense(make([]float32, 6), 6)), `the snapshot: parameter "b" must have shape (2, 3), got (6)`},
	} {
		must.Fail(t, p.Restore(test.snapshot), test.want)
		if !sameWeights(weightBits(p), before) {
			t.Errorf("%s: the error changed parameters", test.want)
		}
	}
}

// TestFreeze checks that Freeze matches whole names of parameters and scopes. Bind adds frozen parameters to Fixed, and
// other parameters to the learnables.
func TestFreeze(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  []string
		err   string
	}{
		{nil, nil, ""},
		{[]string{"l1"}, []string{"l1.weight", "l1.bias"}, ""},
		{[]string{"l1.bias", "l"}, []string{"l1.bias", "l.weight", "l.bias"}, ""},
		{[]string{"l1", "l1.bias"}, []string{"l1.weight", "l1.bias"}, ""},
		{[]string{"l1", "l2"}, nil, `no scope named "l2" to freeze`},
		{[]string{""}, nil, `named ""`},
		{[]string{"l1.b"}, nil, `named "l1.b"`},
	} {
		t.Run(fmt.Sprint(test.names), func(t *testing.T) {
			p := newParams(t)
			l := must.Get(layers.NewLinear(p.Scope("l"), 3, 3, layers.LinearConfig{}))(t)
			l1 := must.Get(layers.NewLinear(p.Scope("l1"), 3, 3, layers.LinearConfig{}))(t)
			err := p.Freeze(test.names...)
			if test.err != "" {
				must.Fail(t, err, test.err)
			} else {
				must.Do(t, err)
			}
			var b layers.Build
			g := G.NewGraph()
			x := must.Get(l.Forward(&b, input(g, "x", random(3, 4, 3))))(t)
			must.Get(l1.Forward(&b, x))(t)
			for _, q := range p.All() {
				frozen := slices.Contains(test.want, q.Name)
				named := func(n *G.Node) bool { return n.Name() == q.Name }
				if q.Frozen != frozen || slices.ContainsFunc(b.Fixed, named) != frozen || slices.ContainsFunc(b.Learnables(), named) == frozen {
					t.Errorf("%s: frozen %t, want %t, with fixed %v and learnables %v", q.Name, q.Frozen, frozen, b.Fixed, b.Learnables())
				}
			}
		})
	}
}

// TestBlank checks that blank parameters are 0 and draw no numbers, that their Init is still checked, and that other
// parameters of the same set have the usual values.
func TestBlank(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p := must.Get(layers.NewParams(dtype, 1))(t)
		never := layers.Init{Func: func(*rand.Rand, []float64, []int) { t.Error("a blank parameter was drawn") }}
		blank := p.Blank().Scope("blank")
		for name, init := range map[string]layers.Init{"func": never, "ones": layers.Ones(), "none": {}} {
			q := must.Get(blank.New(name, init, 2, 3))(t)
			if p.Get("blank."+name) != q || !q.Value.Shape().Eq(tensor.Shape{2, 3}) || slices.Max(floats(t, q.Value)) != 0 || slices.Min(floats(t, q.Value)) != 0 {
				t.Errorf("got %v, want a parameter of the set with zeros", q)
			}
		}
		if q := must.Get(p.New("one", layers.Ones(), 2))(t); floats(t, q.Value)[1] != 1 {
			t.Errorf("got %v, want ones", q)
		}
		must.Refuse(blank.New("wrong", layers.Init{Kind: "wrong"}, 2))(t, "there is no initialiser")
	}
}
