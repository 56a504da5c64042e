package layers_test

import (
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestModernErrors makes and applies layers that can't be: the error names the layer, what it expected and what it got.
func TestModernErrors(t *testing.T) {
	c := newBench(t)
	made := func(_ any, err error) error { return err }
	err := func(_ *G.Node, err error) error { return err }
	rotated := func(r layers.Rotary, heads int, shape ...int) error {
		return err(r.Turn(c.b, c.in("x", shape...), heads, nil))
	}
	at := func(positions *G.Node) error {
		return err(layers.Rotary{}.Turn(c.b, c.in("x", 2, 3, 4), 1, positions))
	}
	elsewhere := input(G.NewGraph(), "at", dense([]int{1, 2}, 2))
	norm := must[*layers.RMSNorm](t)(layers.NewRMSNorm(c.p.Scope("rms"), 4, layers.NormConfig{}))
	gated := must[*layers.FeedForward](t)(layers.NewFeedForward(c.p.Scope("ff"), 4, layers.FeedForwardConfig{Gated: true}))
	block := must[*layers.EncoderBlock](t)(layers.NewEncoderBlock(c.p.Scope("enc"), 4, layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Gated: true}, Norm: layers.NormConfig{Kind: layers.NormRMS}}))
	s := c.p.Scope("s")

	const rotary = "rotary positions"
	for _, tc := range []struct {
		name string
		err  error
		want []string
	}{
		{"rms norm Dim", made(layers.NewRMSNorm(s, 0, layers.NormConfig{})), []string{"rms norm s", "Dim", "at least 1"}},
		{"rms norm Eps", made(layers.NewRMSNorm(s, 2, layers.NormConfig{Eps: -1})), []string{"rms norm s", "Eps", "above 0", "-1"}},
		{"rms norm Eps NaN", made(layers.NewRMSNorm(s, 2, layers.NormConfig{Eps: math.NaN()})), []string{"rms norm s", "Eps", "NaN"}},
		{"rms norm nil", err(norm.Forward(c.b, nil)), []string{"rms norm rms", "nil"}},
		{"rms norm width", err(norm.Forward(c.b, c.in("x", 3, 8))), []string{"rms norm rms", "(…, 4)", "(3, 8)"}},
		{"rms norm dtype", err(norm.Forward(c.b, input(c.g, "f32", as(tensor.Float32, random(1, 3, 4))))), []string{"rms norm rms", "float64", "float32"}},
		{"rms norm of heads", err(norm.ForwardHeads(c.b, c.in("x", 3, 8), 3)), []string{"rms norm rms", "(…, 12)", "(3, 8)"}},
		{"rms norm of no heads", err(norm.ForwardHeads(c.b, c.in("x", 3, 8), 0)), []string{"rms norm rms", "heads", "at least 1"}},
		{"rms norm without a Build", err(norm.Forward(nil, c.in("x", 3, 4))), []string{"Build"}},
		{"block with rms norms", err(block.Forward(c.b, c.in("x", 3, 5), layers.Mask{})), []string{"rms norm enc.norm1", "(…, 4)", "(3, 5)"}},

		{"silu nil", err(layers.SiLU.Forward(c.b, nil)), []string{"silu", "nil"}},
		{"gated width", err(gated.Forward(c.b, c.in("x", 3, 5))), []string{"ff.gate", "(…, 4)", "(3, 5)"}},
		{"gated nil", err(gated.Forward(c.b, nil)), []string{"ff.gate", "nil"}},
		{"gated Hidden", made(layers.NewFeedForward(s, 2, layers.FeedForwardConfig{Hidden: -1, Gated: true})), []string{"feed-forward s", "Hidden", "-1"}},
		{"gated activation", made(layers.NewFeedForward(s, 2, layers.FeedForwardConfig{Activation: 4, Gated: true})), []string{"feed-forward s", "activation 4", "SiLU"}},
		{"no kind of positions", made(layers.NewDecoder(s, layers.ModelConfig{Vocab: 2, Dim: 2, Layers: 1})), []string{"decoder s", "Positions", "Learned", "None"}},

		{"rotary nil", err(layers.Rotary{}.Turn(c.b, nil, 1, nil)), []string{rotary, "nil"}},
		{"rotary of ints", err(layers.Rotary{}.Turn(c.b, c.ints("i", make([]int, 4), 2, 2), 1, nil)), []string{rotary, "float32 or float64", "int"}},
		{"rotary rank", rotated(layers.Rotary{}, 1, 4), []string{rotary, "(T, H·K)", "(4)"}},
		{"rotary rank of 5", rotated(layers.Rotary{}, 1, 1, 1, 1, 1, 4), []string{rotary, "(B, H, T, K)", "(1, 1, 1, 1, 4)"}},
		{"rotary heads twice", rotated(layers.Rotary{}, 2, 2, 2, 3, 4), []string{rotary, "with 1 for the heads", "(2, 2, 3, 4)", "2 heads"}},
		{"rotary of no heads", rotated(layers.Rotary{}, 0, 3, 4), []string{rotary, "heads", "at least 1", "0"}},
		{"rotary heads don't divide", rotated(layers.Rotary{}, 3, 3, 4), []string{rotary, "(3, 4)", "3 heads"}},
		{"rotary odd head", rotated(layers.Rotary{}, 2, 3, 6), []string{rotary, "even width", "3"}},
		{"rotary odd Dim", rotated(layers.Rotary{Dim: 3}, 1, 3, 6), []string{rotary, "Dim", "even", "3"}},
		{"rotary Dim too wide", rotated(layers.Rotary{Dim: 6}, 2, 3, 8), []string{rotary, "Dim", "4", "6"}},
		{"rotary Dim below 0", rotated(layers.Rotary{Dim: -2}, 1, 3, 8), []string{rotary, "Dim", "-2"}},
		{"rotary Base below 0", rotated(layers.Rotary{Base: -1}, 1, 3, 8), []string{rotary, "Base", "above 0", "-1"}},
		{"rotary Base NaN", rotated(layers.Rotary{Base: math.NaN()}, 1, 3, 8), []string{rotary, "Base", "NaN"}},
		{"rotary Base infinite", rotated(layers.Rotary{Base: inf}, 1, 3, 8), []string{rotary, "Base", "finite", "Inf"}},
		{"rotary positions of floats", at(c.in("f", 2)), []string{rotary, "int", "float64"}},
		{"rotary positions' batch", at(c.ints("a", make([]int, 3), 3)), []string{rotary, "(2) or (2, 3)", "(3)"}},
		{"rotary positions' length", at(c.ints("b", make([]int, 4), 2, 2)), []string{rotary, "(2) or (2, 3)", "(2, 2)"}},
		{"rotary positions' rank", at(c.ints("c", make([]int, 6), 2, 3, 1)), []string{rotary, "(2) or (2, 3)", "(2, 3, 1)"}},
		{"rotary positions of a scalar", at(G.NewScalar(c.g, tensor.Int, G.WithName("scalar"))), []string{rotary, "(2) or (2, 3)", "()"}},
		{"rotary positions of another graph", at(elsewhere), []string{rotary, "graph"}},
		{"rotary of nothing", err(layers.Rotary{}.Turn(c.b, G.NewTensor(c.g, tensor.Float64, 2, G.WithShape(0, 4), G.WithName("e")), 1, nil)), []string{"rotary", "at least 1", "(0, 4)"}},

		{"alibi heads", made(layers.ALiBi{}.Slopes(0)), []string{"alibi", "heads", "at least 1", "0"}},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, tc.err, tc.want...) })
	}
}
