//go:build amxmodel

package layers_test

import (
	"bytes"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// panelModel makes a decoder, and a function that returns a call of it in a new graph.
func panelModel(t *testing.T) (p *layers.Params, d *layers.Decoder, function func(adapter *layers.Adapter) func() []float32) {
	p = must.Get(layers.NewParams(tensor.Float32, 1))(t)
	d = must.Get(layers.NewDecoder(p, layers.ModelConfig{
		Vocab: 40, Dim: 40, Layers: 1, Tied: true, Positions: layers.Rotary{}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}},
	}))(t)
	return p, d, func(adapter *layers.Adapter) func() []float32 {
		f := must.Get(layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
			b.Adapter = adapter
			ids := G.NewVector(g, tensor.Int, G.WithName("ids"), G.WithShape(3))
			logits, err := d.Forward(b, ids, layers.Mask{})
			return G.Nodes{ids}, G.Nodes{logits}, err
		}))(t)
		return func() []float32 {
			ids := tensor.New(tensor.WithBacking([]int{7, 0, 39}))
			return must.Get(f.Call(ids))(t)[0].Float32s()
		}
	}
}

// shift changes all values.
func shift(p *layers.Params) {
	for _, q := range p.All() {
		for i, x := range q.Value.Float32s() {
			q.Value.Float32s()[i] = 0.9*x + 0.01
		}
	}
}

// TestPanelsKeepBits checks that kept panels don't change a bit, and that products use them.
func TestPanelsKeepBits(t *testing.T) {
	p, _, function := panelModel(t)
	f := function(nil)
	want := f()
	p.KeepPanels(true)
	for _, f := range []func() []float32{f, f, function(nil)} {
		if got := f(); !slices.Equal(got, want) {
			t.Fatal("kept panels change the results")
		}
	}
	change(p)
	if got := f(); !slices.Equal(got, want) {
		t.Error("products don't use the panels: the results change with numbers that are packed already")
	}
	shift(p)
	got := f()
	p.KeepPanels(false)
	if !slices.Equal(got, f()) {
		t.Error("no run has noticed that all numbers have changed")
	}
}

// change changes one number of a weight, which a product with kept panels doesn't notice.
func change(p *layers.Params) { p.Get("blocks.0.feedforward.up.weight").Value.Float32s()[2]++ }

// TestPanelsFollow changes a number in every way that KeepPanels lists, between calls of one function with panels. Then
// the function must return what it returns without panels.
func TestPanelsFollow(t *testing.T) {
	for name, write := range map[string]func(p *layers.Params, d *layers.Decoder){
		"Load": func(p *layers.Params, _ *layers.Decoder) {
			var file bytes.Buffer
			other, _, _ := panelModel(t)
			change(other)
			must.Do(t, other.SaveTo(&file, nil))
			must.Get(p.LoadFrom(bytes.NewReader(file.Bytes()), int64(file.Len()), layers.LoadOptions{}))(t)
		},
		"Restore": func(p *layers.Params, _ *layers.Decoder) {
			other, _, _ := panelModel(t)
			change(other)
			must.Do(t, p.Restore(other.Snapshot()))
		},
		"Merge": func(p *layers.Params, _ *layers.Decoder) {
			a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 1, Targets: []string{"up"}}, 1))(t)
			for _, q := range a.Params.All() { // s·B·A has one number: in row 0, column 2
				clear(q.Value.Float32s())
			}
			a.Params.All()[0].Value.Float32s()[2] = 1
			a.Params.All()[1].Value.Float32s()[0] = 1
			must.Do(t, a.Merge(p))
		},
		"a step after building a graph for training": func(p *layers.Params, d *layers.Decoder) {
			ids := G.NewVector(G.NewGraph(), tensor.Int, G.WithName("ids"), G.WithShape(3))
			must.Get(d.Forward(&layers.Build{Training: true}, ids, layers.Mask{}))(t)
			change(p)
		},
		"code of one's own": func(p *layers.Params, _ *layers.Decoder) {
			p.KeepPanels(false)
			change(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, d, function := panelModel(t)
			p.KeepPanels(true)
			f := function(nil)
			before := f()
			write(p, d)
			got := f()
			p.KeepPanels(false)
			if !slices.Equal(got, f()) {
				t.Error("a product used the panels of old weights")
			}
			if slices.Equal(got, before) {
				t.Error("the parameters haven't changed")
			}
		})
	}
}

// TestPanelsOfReplacedValue gives a parameter another tensor.
func TestPanelsOfReplacedValue(t *testing.T) {
	p, d, function := panelModel(t)
	p.KeepPanels(true)
	function(nil)()
	weight := d.Blocks[0].FeedForward.Up.Weight
	weight.Value = weight.Value.Clone().(*tensor.Dense)
	change(p)
	got := function(nil)()
	p.KeepPanels(false)
	if !slices.Equal(got, function(nil)()) {
		t.Error("a product used the panels of the old tensor")
	}
}

// TestPanelsOfAdapter changes the parameters of an adapter. The panels of its base may stay.
func TestPanelsOfAdapter(t *testing.T) {
	p, _, function := panelModel(t)
	a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 2}, 1))(t)
	p.KeepPanels(true)
	a.Params.KeepPanels(true)
	f := function(a)
	f()
	a.Params.Get("blocks.0.feedforward.up.lora_b").Value.Float32s()[2]++
	must.Do(t, a.Params.Restore(a.Params.Snapshot()))
	got := f()
	p.KeepPanels(false)
	a.Params.KeepPanels(false)
	if !slices.Equal(got, f()) {
		t.Error("a product used the panels of old weights")
	}
}
