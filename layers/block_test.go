package layers_test

import (
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
)

// TestBlockFormulas compares each kind of block with its formula, computed by the block's own layers.
func TestBlockFormulas(t *testing.T) {
	type node = *G.Node
	type sub = func(x node) node
	for name, tc := range map[string]struct {
		config  layers.BlockConfig
		variant layers.BlockVariant
		want    func(x node, add func(x, y node) node, attend, feed, norm1, norm2 sub) node
	}{
		"pre-norm": {want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2 sub) node {
			y := add(x, attend(norm1(x)))
			return add(y, feed(norm2(y)))
		}},
		"post-norm": {config: layers.BlockConfig{PostNorm: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2 sub) node {
			y := norm1(add(x, attend(x)))
			return norm2(add(y, feed(y)))
		}},
		"parallel": {config: layers.BlockConfig{Parallel: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2 sub) node {
			return add(add(x, attend(norm1(x))), feed(norm2(x)))
		}},
		"without the first norm": {variant: layers.BlockVariant{Blocks: []int{0}, NoNorm1: true}, want: func(x node, add func(x, y node) node, attend, feed, _, norm2 sub) node {
			y := add(x, attend(x))
			return add(y, feed(norm2(y)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBench(t)
			model := layers.ModelConfig{Dim: 4, Layers: 1, Positions: layers.NoPositions{}, Block: tc.config}
			if tc.variant.Blocks != nil {
				model.Variants = []layers.BlockVariant{tc.variant}
			}
			block := must[*layers.Encoder](t)(layers.NewEncoder(c.p, model)).Blocks[0]
			randomise(c.p)
			norm := func(n layers.Norm) sub { return func(x node) node { return c.node(n.Forward(c.b, x)) } }
			x := c.in("x", 2, 3, 4)
			want := tc.want(x, func(x, y node) node { return c.node(G.Add(x, y)) },
				func(x node) node { return c.node(block.Attention.Forward(c.b, x, x, x, layers.Mask{})) },
				func(x node) node { return c.node(block.FeedForward.Forward(c.b, x)) }, norm(block.Norm1), norm(block.Norm2))
			values := read(t, c.node(block.Forward(c.b, x, layers.Mask{})), want)
			near(t, "the block", values[0], values[1], 1e-12)
		})
	}
}
