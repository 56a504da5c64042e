package layers_test

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestVariants compares models whose blocks are all variants with models without variants.
func TestVariants(t *testing.T) {
	near, wide := &window{Left: 1, Right: 0}, &window{Left: 2, Right: 1}
	base := layers.ModelConfig{Vocab: 7, Dim: 8, Layers: 3, Positions: layers.Rotary{Base: 9}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}}
	with := func(w *window, positions layers.PositionsConfig, variants ...layers.BlockVariant) layers.ModelConfig {
		c := base
		c.Block.Attention.Window, c.Positions, c.Variants = w, positions, variants
		return c
	}
	run := func(c layers.ModelConfig) []float64 {
		b := newBench(t)
		e := must.Get(layers.NewEncoder(b.p, c))(t)
		return read(t, b.node(e.Forward(b.b, b.ints("ids", []int{1, 2, 3, 4, 5, 6}, 2, 3), layers.Mask{})))[0]
	}
	narrow := with(near, base.Positions)
	narrow.Block.FeedForward.Hidden = 5
	for name, tc := range map[string]struct{ variants, same layers.ModelConfig }{
		"narrow layers":  {with(near, base.Positions, layers.BlockVariant{Blocks: []int{0, 1, 2}, Window: near, FeedForward: &layers.FeedForwardConfig{Hidden: 5}}), narrow},
		"another window": {with(near, base.Positions, layers.BlockVariant{Blocks: []int{2, 0, 1}, Window: wide}), with(wide, base.Positions)},
		"no window":      {with(near, base.Positions, layers.BlockVariant{Blocks: []int{0, 1}}, layers.BlockVariant{Blocks: []int{2}}), with(nil, base.Positions)},
		"rotary":         {with(near, layers.NoPositions{}, layers.BlockVariant{Blocks: []int{0, 1, 2}, Window: near, Positions: base.Positions}), with(near, base.Positions)},
		"alibi":          {with(nil, base.Positions, layers.BlockVariant{Blocks: []int{0, 1, 2}, Positions: layers.ALiBi{}}), with(nil, layers.ALiBi{})},
		"no positions":   {with(nil, base.Positions, layers.BlockVariant{Blocks: []int{0, 1, 2}, Positions: layers.NoPositions{}}), with(nil, layers.NoPositions{})},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(tc.variants)
			sameBits(t, "states", got, run(tc.same))
			unchanged := tc.variants
			unchanged.Variants = nil
			if slices.Equal(got, run(unchanged)) {
				t.Error("the variants change nothing")
			}
		})
	}
}

func TestHiddenWidths(t *testing.T) {
	c := layers.ModelConfig{Dim: 4, Layers: 4, Block: layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Hidden: 6, Experts: &layers.ExpertsConfig{Count: 5, Top: 2, Shared: 2}}},
		Variants: []layers.BlockVariant{{Blocks: []int{0}, FeedForward: &layers.FeedForwardConfig{}}, {Blocks: []int{2}}}}
	if whole, active := c.HiddenWidths(); whole != (16+3*32)/4.0 || active != (16+3*14)/4.0 {
		t.Errorf("the mean widths are %v and %v, want 28 and 14.5", whole, active)
	}
}

// TestVariantWithoutNorm checks that a variant's block has no parameters of its first norm. TestBlockFormulas checks
// the block's output.
func TestVariantWithoutNorm(t *testing.T) {
	p := newParams(t)
	must.Get(layers.NewEncoder(p, layers.ModelConfig{
		Dim: 4, Layers: 2, Positions: layers.NoPositions{}, Variants: []layers.BlockVariant{{Blocks: []int{0}, NoNorm1: true}},
	}))(t)
	for name, want := range map[string]bool{"blocks.0.norm1.weight": false, "blocks.0.norm2.weight": true, "blocks.1.norm1.weight": true} {
		if got := p.Get(name) != nil; got != want {
			t.Errorf("there is a parameter %s: %t, want %t", name, got, want)
		}
	}
}

func TestVariantErrors(t *testing.T) {
	type variant = layers.BlockVariant
	for name, tc := range map[string]struct {
		variants []variant
		postNorm bool
		want     []string
	}{
		"block beyond the last": {[]variant{{Blocks: []int{0}}, {Blocks: []int{3}}}, false, []string{"Variants[1]", "from 0 to 2", "got 3"}},
		"negative block":        {[]variant{{Blocks: []int{-1}}}, false, []string{"Variants[0]", "from 0 to 2", "got -1"}},
		"no blocks":             {[]variant{{NoNorm1: true}}, false, []string{"Variants[0]", "at least one block"}},
		"twice in one variant":  {[]variant{{Blocks: []int{1, 1}}}, false, []string{"Variants[0]", "block 1", "already"}},
		"twice":                 {[]variant{{Blocks: []int{2, 1}}, {Blocks: []int{1}}}, false, []string{"Variants[1]", "block 1", "already"}},
		"learned positions":     {[]variant{{Blocks: []int{1}, Positions: layers.Learned{MaxLen: 3}}}, false, []string{"Variants[0]", "Rotary, ALiBi or NoPositions", "layers.Learned"}},
		"one's own positions":   {[]variant{{Blocks: []int{1}, Positions: backwards{}}}, false, []string{"Variants[0]", "Rotary, ALiBi or NoPositions", "backwards"}},
		"rotary":                {[]variant{{Blocks: []int{1}, Positions: layers.Rotary{Dim: 6}}}, false, []string{"Variants[0]", "rotary positions", "6"}},
		"window":                {[]variant{{Blocks: []int{1}, Window: &window{Left: -2}}}, false, []string{"blocks.1.attention", "Window", "Left:-2"}},
		"feed-forward":          {[]variant{{Blocks: []int{1}, FeedForward: &layers.FeedForwardConfig{Hidden: math.MaxInt}}}, false, []string{"memory"}},
		"experts":               {[]variant{{Blocks: []int{1}, FeedForward: &layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{}}}}, false, []string{"blocks.1.feedforward", "Count"}},
		"post-norm":             {[]variant{{Blocks: []int{1}, NoNorm1: true}}, true, []string{"Variants[0]", "NoNorm1", "PostNorm"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := layers.ModelConfig{Vocab: 3, Dim: 4, Layers: 3, Positions: layers.NoPositions{}, Block: layers.BlockConfig{PostNorm: tc.postNorm}, Variants: tc.variants}
			must.Refuse(layers.NewDecoder(newParams(t).Scope("s"), c))(t, append(tc.want, " s")...)
		})
	}
}
