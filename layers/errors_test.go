package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestConfigurationErrors makes invalid layers. Each error names the layer, the expected and the actual value.
func TestConfigurationErrors(t *testing.T) {
	type model = layers.ModelConfig
	nan := math.NaN()
	for _, tc := range []struct {
		name string
		make func(p *layers.Params) error
		want []string
	}{
		{"positions", making(layers.Learned{}.New, 2, layers.AttentionConfig{}), []string{"positions s", "MaxLen", "at least 1"}},
		{"norm Eps", making(layers.NewNorm, 2, layers.NormConfig{Eps: -1}), []string{"layer norm s", "Eps", "from 1e-30 to 1e+15", "-1"}},
		{"norm Eps NaN", making(layers.NewNorm, 2, layers.NormConfig{Eps: nan}), []string{"layer norm s", "Eps", "NaN"}},
		{"feed-forward activation", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Activation: 99}), []string{"feed-forward s", "activation 99", "use one of relu, gelu, gelu tanh, silu"}},
		{"feed-forward dropout", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Dropout: 1}), []string{"feed-forward s", "below 1", "got 1"}},
		{"experts Count", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{}}), []string{"experts s", "Count", "at least 1", "0"}},
		{"experts Top", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 2, Top: 3}}), []string{"experts s", "Top", "2", "3"}},
		{"experts Groups", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 4, Groups: 3, TopGroups: 1}}), []string{"experts s", "Groups", "4", "3"}},
		{"experts TopGroups", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 4, Groups: 2}}), []string{"experts s", "TopGroups", "0 of 2"}},
		{"experts of too few groups", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 4, Top: 3, Groups: 2, TopGroups: 1}}), []string{"experts s", "1 groups of 2 experts", "TopGroups"}},
		{"experts Limit", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 2, Limit: 7}}), []string{"experts s", "Limit", "gated", "relu"}},
		{"experts Scale", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 2, Scale: nan}}), []string{"experts s", "Scale", "NaN"}},
		{"experts Shared", making(layers.NewFeedForward, 2, layers.FeedForwardConfig{Experts: &layers.ExpertsConfig{Count: 2, Shared: -1}}), []string{"experts s", "Shared", "-1"}},
		{"attention heads don't divide", making(layers.NewMultiHeadAttention, 6, layers.AttentionConfig{Heads: 4}), []string{"attention s", "multiple of Heads", "6", "4"}},
		{"attention dropout", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{Dropout: 1}), []string{"attention s", "below 1", "got 1"}},
		{"attention dropout NaN", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{Dropout: nan}), []string{"attention s", "NaN"}},
		{"attention NormEps", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{NormEps: 1e-3}), []string{"attention s", "NormEps", "QKNorm", "0.001"}},
		{"attention JointNorm", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{JointNorm: true}), []string{"attention s", "JointNorm", "QKNorm"}},
		{"attention's key heads don't divide heads", making(layers.NewMultiHeadAttention, 8, layers.AttentionConfig{Heads: 4, KeyValueHeads: 3}), []string{"attention s", "multiple of KeyValueHeads", "4 and 3"}},
		{"attention KeyValueHeads", making(layers.NewMultiHeadAttention, 8, layers.AttentionConfig{Heads: 4, KeyValueHeads: -1}), []string{"attention s", "KeyValueHeads", "at least 0", "-1"}},
		{"attention Softcap", making(layers.NewMultiHeadAttention, 8, layers.AttentionConfig{Softcap: -2}), []string{"attention s", "Softcap", "above 0", "-2"}},
		{"attention Softcap NaN", making(layers.NewMultiHeadAttention, 8, layers.AttentionConfig{Softcap: nan}), []string{"attention s", "Softcap", "NaN"}},
		{"attention Scale NaN", making(layers.NewMultiHeadAttention, 8, layers.AttentionConfig{Scale: nan}), []string{"attention s", "Scale", "finite", "NaN"}},
		{"attention's grouped heads with tied weights", making(layers.NewMultiHeadAttention, 8, layers.AttentionConfig{Heads: 4, KeyValueHeads: 2, TieQueryKey: true}), []string{"attention s", "TieQueryKey", "4", "2"}},
		{"attention Window", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{Window: &window{Right: -2}}), []string{"attention s", "Window", "−1", "Right:-2"}},
		{"attention OutputBias", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{NoOutput: true, OutputBias: new(false)}), []string{"attention s", "OutputBias", "NoOutput"}},
		{"block Parallel, post-norm", making(layers.NewEncoderBlock, 4, layers.BlockConfig{Parallel: true, PostNorm: true}), []string{"encoder block s", "Parallel", "PostNorm"}},
		{"block Parallel, cross-attention", making(layers.NewCrossDecoderBlock, 4, layers.BlockConfig{Parallel: true}), []string{"decoder block s", "Parallel", "encoder's output"}},
		{"block NoInputNorm", making(layers.NewEncoderBlock, 4, layers.BlockConfig{NoInputNorm: true}), []string{"encoder block s", "NoInputNorm", "OutputNorm"}},
		{"block SharedNorm", making(layers.NewEncoderBlock, 4, layers.BlockConfig{SharedNorm: true}), []string{"encoder block s", "SharedNorm", "Parallel"}},
		{"block SharedNorm, NoInputNorm", making(layers.NewEncoderBlock, 4, layers.BlockConfig{SharedNorm: true, Parallel: true, NoInputNorm: true, OutputNorm: true}), []string{"encoder block s", "SharedNorm", "NoInputNorm true"}},
		{"block ResidualScale", making(layers.NewDecoderBlock, 4, layers.BlockConfig{ResidualScale: nan}), []string{"decoder block s", "ResidualScale", "finite", "NaN"}},
		{"block KeyInput", making(layers.NewEncoderBlock, 4, layers.BlockConfig{Attention: layers.AttentionConfig{KeyInput: 3}}), []string{"attention s", "KeyInput", "width, 4", "3"}},
		{"block ValueInput", making(layers.NewCrossDecoderBlock, 4, layers.BlockConfig{Attention: layers.AttentionConfig{ValueInput: 5}}), []string{"attention s", "ValueInput", "width, 4", "5"}},
		{"block NoOutput", making(layers.NewEncoderBlock, 4, layers.BlockConfig{Attention: layers.AttentionConfig{NoOutput: true, ValueDim: 3}}), []string{"attention s", "NoOutput", "4", "3"}},
		{"block Dropout", making(layers.NewEncoderBlock, 4, layers.BlockConfig{Dropout: -1}), []string{"encoder block s", "dropout", "-1"}},
		{"norm Kind", making(layers.NewEncoderBlock, 4, layers.BlockConfig{Norm: layers.NormConfig{Kind: "batch"}}), []string{"norm s.norm1", "batch", "use one of layer, rms"}},
		{"rms norm Eps", making(layers.NewNorm, 2, layers.NormConfig{Kind: "rms", Eps: inf}), []string{"rms norm s", "Eps", "from 1e-30", "+Inf"}},
		{"no positions", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 2, Layers: 1}), []string{"decoder s", "Positions", "Learned", "NoPositions"}},
		{"list of a nil scheme", making(layers.PositionsList{Schemes: []layers.PositionsConfig{nil}}.New, 4, layers.AttentionConfig{}), []string{"positions s.0", "must not be nil"}},
		{"list of positions", making(layers.PositionsList{Schemes: []layers.PositionsConfig{layers.ALiBi{}, layers.Learned{}}}.New, 4, layers.AttentionConfig{}), []string{"positions s.1", "MaxLen"}},
		{"rotary of odd heads", making(layers.Rotary{}.New, 6, layers.AttentionConfig{Heads: 2}), []string{"rotary positions", "even width", "3"}},
		{"decoder's rotary", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 8, Layers: 1, Positions: layers.Rotary{Dim: 6}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}}), []string{"decoder s", "rotary positions", "Dim", "4", "6"}},
		{"alibi heads", func(*layers.Params) error { return made(layers.ALiBi{}.Slopes(0)) }, []string{"alibi", "heads", "at least 1", "0"}},
		{"TiedBias", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, TiedBias: true}), []string{"decoder s", "TiedBias", "set Tied"}},
		{"LogitSoftcap", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, LogitSoftcap: -1}), []string{"decoder s", "LogitSoftcap", "from 1e-30", "-1"}},
		{"HeadScale", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, HeadScale: nan}), []string{"decoder s", "HeadScale", "finite", "NaN"}},
		{"HeadScale without a head", makingModel(layers.NewEncoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, HeadScale: 2}), []string{"encoder s", "HeadScale", "Outputs or Tied"}},
		{"LogitSoftcap without a head", makingModel(layers.NewEncoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, LogitSoftcap: 1}), []string{"encoder s", "for a head", "Outputs or Tied"}},
		{"Transform's activation", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, Transform: &layers.TransformConfig{Activation: 9}}), []string{"transform s.transform", "activation 9"}},
		{"decoder heads", makingModel(layers.NewDecoder, model{Vocab: 2, Dim: 4, Layers: 1, Positions: layers.Learned{MaxLen: 2}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 3}}}), []string{"s.blocks.0.attention", "4", "3"}},
	} {
		t.Run(tc.name, func(t *testing.T) { must.Fail(t, tc.make(newParams(t).Scope("s")), tc.want...) })
	}
}

// making returns a function that calls a constructor with the given width and configuration.
func making[C, L any](make func(p *layers.Params, dim int, c C) (L, error), dim int, c C) func(p *layers.Params) error {
	return func(p *layers.Params) error { return made(make(p, dim, c)) }
}

func makingModel[M any](make func(p *layers.Params, c layers.ModelConfig) (M, error), c layers.ModelConfig) func(p *layers.Params) error {
	return func(p *layers.Params) error { return made(make(p, c)) }
}

// TestForwardErrors applies layers to invalid nodes, in the fused and the composed form.
func TestForwardErrors(t *testing.T) {
	t.Run("fused", func(t *testing.T) { testForwardErrors(t, false) })
	t.Run("composed", func(t *testing.T) { testForwardErrors(t, true) })
}

func testForwardErrors(t *testing.T, composed bool) {
	c := newBench(t)
	c.b.Composed = composed
	err := func(_ *G.Node, err error) error { return err }
	i := 0
	floats := func(shape ...int) *G.Node { i++; return input(c.g, fmt.Sprint("in", i), random(1, shape...)) }
	in32 := func(shape ...int) *G.Node {
		i++
		return input(c.g, fmt.Sprint("in", i), as(tensor.Float32, random(1, shape...)))
	}
	ints := func(shape ...int) *G.Node {
		i++
		return input(c.g, fmt.Sprint("in", i), dense(make([]int, tensor.Shape(shape).TotalSize()), shape...))
	}
	elsewhere := input(G.NewGraph(), "x", random(1, 2, 3, 4))
	scalar := G.NewScalar(c.g, tensor.Float64, G.WithName("scalar"))
	shapeless := G.NewTensor(c.g, tensor.Float64, 3, G.WithName("shapeless"))

	empty := func(dt tensor.Dtype, shape ...int) *G.Node {
		i++
		return G.NewTensor(c.g, dt, len(shape), G.WithShape(shape...), G.WithName(fmt.Sprint("in", i)))
	}

	p := c.p
	linear := must.Get(layers.NewLinear(p.Scope("lin"), 4, 2, layers.LinearConfig{}))(t)
	norm := must.Get(layers.NewNorm(p.Scope("ln"), 4, layers.NormConfig{}))(t)
	embedding := must.Get(layers.NewEmbedding(p.Scope("emb"), 4, 4, layers.Init{}))(t)
	positions := must.Get(layers.Learned{MaxLen: 3}.New(p.Scope("pos"), 4, layers.AttentionConfig{}))(t)
	feed := must.Get(layers.NewFeedForward(p.Scope("ff"), 4, layers.FeedForwardConfig{}))(t)
	rms := must.Get(layers.NewNorm(p.Scope("rms"), 4, layers.NormConfig{Kind: "rms"}))(t)
	gated := must.Get(layers.NewFeedForward(p.Scope("ff2"), 4, layers.FeedForwardConfig{Gated: true}))(t)
	modern := must.Get(layers.NewEncoderBlock(p.Scope("modern"), 4, layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Gated: true}, Norm: layers.NormConfig{Kind: "rms"}}))(t)
	attn := must.Get(layers.NewMultiHeadAttention(p.Scope("mha"), 4, layers.AttentionConfig{Heads: 2}))(t)
	near := must.Get(layers.NewMultiHeadAttention(p.Scope("near"), 4, layers.AttentionConfig{Window: &window{Left: 3}}))(t)
	enc := must.Get(layers.NewEncoderBlock(p.Scope("enc"), 4, layers.BlockConfig{}))(t)
	dec := must.Get(layers.NewDecoderBlock(p.Scope("dec"), 4, layers.BlockConfig{}))(t)
	cross := must.Get(layers.NewCrossDecoderBlock(p.Scope("cross"), 4, layers.BlockConfig{PostNorm: true}))(t)
	model := must.Get(layers.NewEncoder(p.Scope("model"), layers.ModelConfig{Vocab: 3, Dim: 4, Positions: layers.Learned{MaxLen: 3}, Layers: 1}))(t)

	core := func(q, k, v *G.Node, o layers.AttentionOptions) error {
		_, _, err := scaledDotProduct(c.b, q, k, v, o)
		return err
	}
	masked := func(m layers.Mask) error { // scores of shape (2, 2, 3, 5)
		return err(attn.Forward(c.b, floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 4), m))
	}
	const sdp = "scaled dot-product attention"
	wantErrors(t, []errorCase{
		{"linear width", err(linear.Forward(c.b, floats(3, 5))), []string{"linear lin", "(…, 4)", "(3, 5)"}},
		{"linear dtype", err(linear.Forward(c.b, in32(3, 4))), []string{"linear lin", "float64", "float32"}},
		{"linear scalar", err(linear.Forward(c.b, scalar)), []string{"linear lin", "(…, 4)", "()"}},
		{"linear without a shape", err(linear.Forward(c.b, shapeless)), []string{"linear lin", "(…, 4)"}},
		{"linear of nothing", err(linear.Forward(c.b, empty(tensor.Float64, 0, 4))), []string{"linear", "at least 1", "(0, 4)"}},
		{"attention of no positions", err(attn.Forward(c.b, empty(tensor.Float64, 2, 0, 4), floats(2, 3, 4), floats(2, 3, 4), layers.Mask{})), []string{"at least 1", "(2, 0, 4)"}},
		{"attention to nothing", core(floats(3, 4), empty(tensor.Float64, 0, 4), empty(tensor.Float64, 0, 4), layers.AttentionOptions{}), []string{sdp, "at least 1", "(0, 4)"}},
		{"embedding of nothing", err(embedding.Forward(c.b, empty(tensor.Int, 2, 0))), []string{"embedding", "at least 1", "(2, 0)"}},
		{"loss of nothing", err(mean(layers.CrossEntropy(&layers.Build{}, empty(tensor.Float64, 0, 4), empty(tensor.Int, 0), layers.CrossEntropyOptions{}))), []string{"cross-entropy", "at least 1", "(0, 4)"}},
		{"norm of nothing", err(norm.Forward(c.b, empty(tensor.Float64, 0, 4))), []string{"norm", "at least 1", "(0, 4)"}},
		{"empty mask", masked(layers.Mask{Bias: empty(tensor.Float64, 3, 0)}), []string{"attention mha", "(3, 0)"}},

		{"norm width", err(norm.Forward(c.b, floats(3, 5))), []string{"layer norm ln", "(…, 4)", "(3, 5)"}},
		{"embedding of floats", err(embedding.Forward(c.b, floats(3))), []string{"embedding emb", "int", "float64"}},
		{"positions too long", err(positions.Embed(c.b, floats(2, 5, 4), nil)), []string{"positions pos", "at most 3", "5"}},
		{"positions rank", err(positions.Embed(c.b, floats(4), nil)), []string{"positions pos", "(T, 4) or (B, T, 4)", "(4)"}},
		{"waves rank", err(layers.Sinusoidal{}.Embed(c.b, floats(4), nil)), []string{"sinusoidal", "(T, D) or (B, T, D)", "(4)"}},
		{"waves base", err(layers.Sinusoidal{Base: -1}.Embed(c.b, floats(3, 4), nil)), []string{"sinusoidal", "Base", "from 1e-15", "-1"}},
		{"waves of ints", err(layers.Sinusoidal{}.Embed(c.b, ints(3, 4), nil)), []string{"sinusoidal", "float32 or float64", "int"}},
		{"pooling", err(layers.Pool(c.b, c.in("pooled", 2, 3), nil, 9)), []string{"no pooling 9", "mean, first, last"}},
		{"activation of ints", err(layers.ReLU.Forward(c.b, ints(2))), []string{"relu", "int"}},
		{"no such activation", err(layers.Activation(-1).Forward(c.b, floats(2))), []string{"activation -1"}},
		{"feed-forward width", err(feed.Forward(c.b, floats(3, 5))), []string{"ff.up", "(…, 4)", "(3, 5)"}},
		{"rms norm width", err(rms.Forward(c.b, floats(3, 8))), []string{"rms norm rms", "(…, 4)", "(3, 8)"}},
		{"rms norm dtype", err(rms.Forward(c.b, in32(3, 4))), []string{"rms norm rms", "float64", "float32"}},
		{"rms norm of heads", err(rms.Heads(c.b, floats(3, 8), 3)), []string{"rms norm rms", "(…, 12)", "(3, 8)"}},
		{"block with rms norms", err(modern.Forward(c.b, floats(3, 5), layers.Mask{})), []string{"rms norm modern.norm1", "(…, 4)", "(3, 5)"}},
		{"gated width", err(gated.Forward(c.b, floats(3, 5))), []string{"ff2.gate", "(…, 4)", "(3, 5)"}},
		{"dropout of 1", err(layers.Dropout{P: 1}.Forward(c.b, floats(2))), []string{"dropout", "below 1", "got 1"}},
		{"dropout below 0", err(layers.Dropout{P: -0.5}.Forward(&layers.Build{}, floats(2))), []string{"dropout", "at least 0", "-0.5"}},

		{"core rank", core(floats(4), floats(4), floats(4), layers.AttentionOptions{}), []string{sdp, "(T, K), (B, T, K) or (B, H, T, K)", "(4)"}},
		{"core of ints", core(ints(3, 4), ints(3, 4), ints(3, 4), layers.AttentionOptions{}), []string{sdp, "float32 or float64", "int"}},
		{"core of two graphs", core(floats(2, 3, 4), elsewhere, elsewhere, layers.AttentionOptions{}), []string{sdp, "graph"}},

		{"attention width", err(attn.Forward(c.b, floats(2, 3, 5), floats(2, 3, 4), floats(2, 3, 4), layers.Mask{})), []string{"attention mha", "query", "(…, 4)", "(2, 3, 5)"}},
		{"attention rank", err(attn.Forward(c.b, floats(1, 2, 3, 4), floats(2, 3, 4), floats(2, 3, 4), layers.Mask{})), []string{"attention mha", "(T, 4) or (B, T, 4)", "(1, 2, 3, 4)"}},
		{"attention ranks", err(attn.Forward(c.b, floats(1, 3, 4), floats(3, 4), floats(3, 4), layers.Mask{})), []string{"attention mha", "(1, 3, 4)", "(3, 4)"}},
		{"attention batches", err(attn.Forward(c.b, floats(2, 3, 4), floats(1, 3, 4), floats(1, 3, 4), layers.Mask{})), []string{"attention mha", "batch axis", "(1, 3, 4)"}},
		{"attention lengths", err(attn.Forward(c.b, floats(2, 3, 4), floats(2, 3, 4), floats(2, 5, 4), layers.Mask{})), []string{"attention mha", "agree in K and S", "(2, 5, 4)"}},
		{"attention dtype", err(attn.Forward(c.b, in32(2, 3, 4), in32(2, 3, 4), in32(2, 3, 4), layers.Mask{})), []string{"attention mha", "float64", "float32"}},
		{"mask heads", masked(layers.Mask{Bias: floats(3, 3, 5)}), []string{"attention mha", "Mask.Bias", "(2, 2, 3, 5)", "(3, 3, 5)"}},
		{"window below −1 beside an own one", err(near.Forward(c.b, floats(3, 4), floats(3, 4), floats(3, 4), layers.Mask{Window: &window{Left: -2}})), []string{"attention near", "Window", "−1", "Left:-2"}},
		{"offset out of range", masked(layers.Mask{Offset: math.MaxInt}), []string{"attention mha", "Offset", "range"}},
		{"mask of another graph", masked(layers.Mask{Bias: elsewhere}), []string{"attention mha", "Bias", "another graph"}},

		{"block width", err(enc.Forward(c.b, floats(2, 3, 5), layers.Mask{})), []string{"enc.", "(…, 4)", "(2, 3, 5)"}},
		{"block rank", err(enc.Forward(c.b, floats(4), layers.Mask{})), []string{"enc.attention", "(T, 4) or (B, T, 4)", "(4)"}},
		{"decoder with a memory", err(dec.ForwardCross(c.b, floats(2, 3, 4), floats(2, 3, 4), layers.Mask{}, layers.Mask{})), []string{"decoder block dec", "has no cross-attention"}},
		{"decoder without a memory", err(cross.ForwardCross(c.b, floats(2, 3, 4), nil, layers.Mask{}, layers.Mask{})), []string{"decoder block cross", "has cross-attention"}},
		{"decoder's memory", err(cross.ForwardCross(c.b, floats(2, 3, 4), floats(3, 3, 4), layers.Mask{}, layers.Mask{})), []string{"attention cross.cross", "(3, 3, 4)"}},
		{"model of floats", err(model.Forward(c.b, floats(2, 3), layers.Mask{})), []string{"encoder model", "int", "float64"}},
		{"model rank", err(model.Forward(c.b, ints(1, 2, 3), layers.Mask{})), []string{"encoder model", "(B, T) or (T)", "(1, 2, 3)"}},
		{"model too long", err(model.Forward(c.b, ints(2, 4), layers.Mask{})), []string{"model.positions", "at most 3", "4"}},

		{"loss targets' shape", err(mean(layers.CrossEntropy(&layers.Build{}, floats(2, 3, 4), ints(6), layers.CrossEntropyOptions{}))), []string{"cross-entropy", "(2, 3)", "(6)"}},
		{"loss targets' dtype", err(mean(layers.CrossEntropy(&layers.Build{}, floats(3, 4), floats(3), layers.CrossEntropyOptions{}))), []string{"cross-entropy", "int", "float64"}},
		{"loss logits' rank", err(mean(layers.CrossEntropy(&layers.Build{}, floats(4), ints(1), layers.CrossEntropyOptions{}))), []string{"cross-entropy", "(…, V)", "(4)"}},
		{"loss of two graphs", err(mean(layers.CrossEntropy(&layers.Build{}, elsewhere, ints(2, 3), layers.CrossEntropyOptions{}))), []string{"cross-entropy", "graph"}},
	})
}

// TestNumbersOfFloat32 uses numbers that round to 0 in float32. They are errors in float32 and valid in float64.
func TestNumbersOfFloat32(t *testing.T) {
	for _, o := range []layers.AttentionOptions{{Softcap: 1e-60}, {Scale: -1e-60}} {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			x := input(G.NewGraph(), "x", as(dt, random(1, 2, 3)))
			_, err := layers.ScaledDotProduct(&layers.Build{}, x, x, x, o)
			if failed := err != nil; failed != (dt == tensor.Float32) {
				t.Errorf("%v, %+v: got the error %v, want one only in float32", dt, o, err)
			}
		}
	}
}
