package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// TestPaddingInFront runs a model on a sequence with and without masked padding in front. The sequence has the same
// positions both times, so the logits are the same.
func TestPaddingInFront(t *testing.T) {
	sequence, padding := []int{3, 1, 4, 2}, []int{6, 6}
	n := len(padding) + len(sequence)
	for name, config := range cacheConfigs() {
		for _, form := range []string{"first", "all"} {
			name := name + "/" + form
			if testseed.LeftOut(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				model := must.Get(layers.NewDecoder(newParams(t), config))(t)
				g := G.NewGraph()
				want := read(t, must.Get(model.Forward(&layers.Build{}, input(g, "ids", dense(sequence, 1, len(sequence))), layers.Mask{}))(t))[0]

				g = G.NewGraph()
				allow := make([]bool, n)
				positions := make([]int, n)
				for i := range n {
					allow[i], positions[i] = i >= len(padding), max(0, i-len(padding))
				}
				b := &layers.Build{Positions: input(g, "positions", dense(positions, 1, n))}
				if form == "first" { // the padding gets negative positions, which Learned doesn't have
					if model.Positions.MaxLen() > 0 {
						t.Skip("Learned has no negative positions")
					}
					b.Positions = input(g, "first", dense([]int{-len(padding)}, 1))
				}
				ids := input(g, "ids", dense(append(append([]int(nil), padding...), sequence...), 1, n))
				got := read(t, must.Get(model.Forward(b, ids, layers.Mask{Allow: input(g, "allow", dense(allow, 1, 1, 1, n))}))(t))[0]
				near(t, "logits", got[len(padding)*cacheVocab:], want, 1e-12)
			})
		}
	}
}

// TestPackedSequences puts two sequences into one row. A mask separates them, and the positions of each sequence start
// at 0: the states are the same as in two rows.
func TestPackedSequences(t *testing.T) {
	first, second := []int{3, 1, 4}, []int{2, 5}
	for name, config := range cacheConfigs() {
		t.Run(name, func(t *testing.T) {
			model := must.Get(layers.NewEncoder(newParams(t), config))(t)
			var want []float64
			for _, sequence := range [][]int{first, second} {
				g := G.NewGraph()
				want = append(want, read(t, must.Get(model.Forward(&layers.Build{}, input(g, "ids", dense(sequence, 1, len(sequence))), layers.Mask{}))(t))[0]...)
			}
			g := G.NewGraph()
			allow := make([]bool, 25)
			for i := range allow {
				allow[i] = (i/5 < 3) == (i%5 < 3)
			}
			b := &layers.Build{Positions: input(g, "positions", dense([]int{0, 1, 2, 0, 1}, 1, 5))}
			ids := input(g, "ids", dense(append(append([]int(nil), first...), second...), 1, 5))
			got := read(t, must.Get(model.Forward(b, ids, layers.Mask{Allow: input(g, "allow", dense(allow, 5, 5))}))(t))[0]
			near(t, "states", got, want, 1e-12)
		})
	}
}

// TestPositionsHide checks every position scheme: the future and padding change neither outputs nor gradients.
func TestPositionsHide(t *testing.T) {
	var cases []hidingCase
	for name, scheme := range schemes() {
		config, shape := continuous(scheme), []int{2, 7, 8}
		cases = append(cases, hidingCase{name: "the future of a decoder, " + name, shape: shape, hidden: from(4), build: func(c *bench, x *G.Node) *G.Node {
			return c.node(must.Get(layers.NewDecoder(c.p, config))(c).Forward(c.b, x, layers.Mask{}))
		}}, hidingCase{name: "the padding of an encoder, " + name, shape: shape, hidden: past(7, 3), build: func(c *bench, x *G.Node) *G.Node {
			return c.node(must.Get(layers.NewEncoder(c.p, config))(c).Forward(c.b, x, layers.Mask{KeyLengths: c.lengths(7, 3)}))
		}})
	}
	hide(t, cases)
}

func TestPositionsErrors(t *testing.T) {
	p := newParams(t)
	model := must.Get(layers.NewDecoder(p.Scope("d"), layers.ModelConfig{Vocab: 5, Positions: layers.Learned{MaxLen: 3}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1}))(t)
	pair := must.Get(layers.NewEncoderDecoder(p.Scope("ed"), layers.EncoderDecoderConfig{
		Model: layers.ModelConfig{Vocab: 5, Positions: layers.Learned{MaxLen: 3}, Dim: 4, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1},
	}))(t)
	g := G.NewGraph()
	ids := input(g, "ids", dense([]int{1, 2}, 1, 2))
	b := &layers.Build{}
	positions := func(shape ...int) *layers.Build {
		b.Positions = input(g, fmt.Sprint("positions", shape), tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Int)))
		return b
	}
	must.Refuse(model.Forward(positions(2), ids, layers.Mask{}))(t, "d.positions", "shape (1) or (1, 2)", "(2)")
	b.Cache = must.Get(layers.NewCache(1, 3))(t)
	must.Refuse(model.Forward(positions(1), ids, layers.Mask{}))(t, "decoder d", "Positions", "Cache")
	b.Cache = nil
	must.Refuse(pair.Forward(positions(1), ids, ids, layers.Mask{}))(t, "encoder-decoder ed", "two sequences")

	b.Positions = input(g, "far", dense([]int{2}, 1))
	must.Refuse(tryRead(t, must.Get(model.Forward(b, ids, layers.Mask{}))(t)))(t, "d.positions", "position 3 of sequence 0", "0 and 2")
	b.Positions = nil
	for _, m := range []layers.Mask{{Offset: 1}, {Offset: -1}, {Offsets: input(g, "offsets", dense([]int{0}, 1))}} { // tokens could see the future
		must.Refuse(model.Forward(b, ids, m))(t, "can't have an offset")
	}
}

// TestSinusoidalPositions compares the waves with the paper's formula.
func TestSinusoidalPositions(t *testing.T) {
	for _, dim := range []int{1, 6, 7} {
		c := newBench(t)
		y := c.node(layers.Sinusoidal{}.Embed(c.b, input(c.g, "x", dense(make([]float64, 2*5*dim), 2, 5, dim)), nil))
		z := c.node(layers.Sinusoidal{Base: 50}.Embed(c.b, input(c.g, "x", dense(make([]float64, 2*5*dim), 2, 5, dim)), nil))
		halves := c.node(layers.Sinusoidal{Halves: true}.Embed(c.b, input(c.g, "x", dense(make([]float64, 2*5*dim), 2, 5, dim)), nil))
		for i, base := range []float64{10000, 50, 10000} {
			want := make([]float64, 2*5*dim)
			for k := range want {
				pos, axis := k/dim%5, k%dim
				if i == 2 { // the sines of all even axes come first
					even := (dim + 1) / 2
					axis = 2*(axis%even) + axis/even
				}
				angle := float64(pos) / math.Pow(base, float64(2*(axis/2))/float64(dim))
				want[k] = math.Sin(angle)
				if axis%2 == 1 {
					want[k] = math.Cos(angle)
				}
			}
			near(t, "waves", read(t, y, z, halves)[i], want, 1e-14)
		}
	}
}
