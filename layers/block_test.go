package layers_test

import (
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestBlockFormulas compares each kind of block with its formula, computed by the block's own layers.
func TestBlockFormulas(t *testing.T) {
	type node = *G.Node
	type sub = func(x node) node
	for name, tc := range map[string]struct {
		config  layers.BlockConfig
		variant layers.BlockVariant
		want    func(x node, add func(x, y node) node, attend, feed, norm1, norm2, out1, out2 sub) node
	}{
		"pre-norm": {want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2, _, _ sub) node {
			y := add(x, attend(norm1(x)))
			return add(y, feed(norm2(y)))
		}},
		"post-norm": {config: layers.BlockConfig{PostNorm: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2, _, _ sub) node {
			y := norm1(add(x, attend(x)))
			return norm2(add(y, feed(y)))
		}},
		"parallel": {config: layers.BlockConfig{Parallel: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2, _, _ sub) node {
			return add(add(x, attend(norm1(x))), feed(norm2(x)))
		}},
		"output norms": {config: layers.BlockConfig{OutputNorm: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2, out1, out2 sub) node {
			y := add(x, out1(attend(norm1(x))))
			return add(y, out2(feed(norm2(y))))
		}},
		"output norms, post-norm": {config: layers.BlockConfig{OutputNorm: true, PostNorm: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2, out1, out2 sub) node {
			y := norm1(add(x, out1(attend(x))))
			return norm2(add(y, out2(feed(y))))
		}},
		"output norms, parallel": {config: layers.BlockConfig{OutputNorm: true, Parallel: true}, want: func(x node, add func(x, y node) node, attend, feed, norm1, norm2, out1, out2 sub) node {
			return add(add(x, out1(attend(norm1(x)))), out2(feed(norm2(x))))
		}},
		"without the first norm": {variant: layers.BlockVariant{Blocks: []int{0}, NoNorm1: true}, want: func(x node, add func(x, y node) node, attend, feed, _, norm2, _, _ sub) node {
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
			block := must.Get(layers.NewEncoder(c.p, model))(t).Blocks[0]
			randomise(c.p)
			norm := func(n *layers.Norm) sub { return func(x node) node { return c.node(n.Forward(c.b, x)) } }
			x := c.in("x", 2, 3, 4)
			want := tc.want(x, func(x, y node) node { return c.node(G.Add(x, y)) },
				func(x node) node { return c.node(block.Attention.Forward(c.b, x, x, x, layers.Mask{})) },
				func(x node) node { return c.node(block.FeedForward.Forward(c.b, x)) }, norm(block.Norm1), norm(block.Norm2), norm(block.Norm1Out), norm(block.Norm2Out))
			values := read(t, c.node(block.Forward(c.b, x, layers.Mask{})), want)
			near(t, "the block", values[0], values[1], 1e-12)
		})
	}
}
