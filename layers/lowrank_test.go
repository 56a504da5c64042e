package layers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// adapted adds an adapter with random values to a bench.
func (c *bench) adapted(config layers.LowRank) *layers.Adapter {
	a := must.Get(layers.NewAdapter(c.p, config, 1))(c)
	randomise(a.Params)
	c.b.Adapter = a
	return a
}

func TestGradientsOfAdapters(t *testing.T) {
	var cases []gradientCase
	for _, act := range []layers.Activation{layers.ReLU, layers.GELU} {
		for _, rank := range []int{1, 3} {
			cases = append(cases, gradientCase{fmt.Sprintf("feed-forward with %v, rank %d", act, rank), func(c *bench) *G.Node {
				f := c.feedForward(3, layers.FeedForwardConfig{Hidden: 5, Activation: act})
				randomise(c.p)
				c.adapted(layers.LowRank{Rank: rank, Alpha: 2, RootScale: rank == 3})
				return c.node(f.Forward(c.b, c.in("x", 2, 2, 3)))
			}})
		}
	}
	for name, config := range map[string]layers.LowRank{
		"all":           {Rank: 2},
		"some":          {Rank: 2, Alpha: 3, Targets: []string{"value", "blocks.0.feedforward.up"}},
		"joint":         {Rank: 2, Alpha: 3, Targets: []string{"query"}, Joint: [][]string{{"query", "key", "value"}}},
		"whole":         {Rank: 1, Targets: []string{"output"}, Whole: []string{"blocks.0.feedforward", "norm"}},
		"whole, tied":   {Rank: 1, Targets: []string{"output"}, Whole: []string{"embedding", "head"}},
		"whole, a bias": {Rank: 1, Targets: []string{"down"}, Whole: []string{"head.bias"}},
	} {
		cases = append(cases, gradientCase{"decoder, " + name, func(c *bench) *G.Node {
			d := must.Get(layers.NewDecoder(c.p, layers.ModelConfig{Vocab: 5, Dim: 4, Layers: 1, Tied: true, TiedBias: true, Positions: layers.NoPositions{}, Block: layers.BlockConfig{
				Attention: layers.AttentionConfig{Heads: 2, KeyValueHeads: 1}}}))(c)
			randomise(c.p)
			c.adapted(config)
			return c.node(d.Forward(c.b, c.ints("ids", []int{0, 3, 1, 4, 2, 2}, 2, 3), layers.Mask{}))
		}})
	}
	checkGradients(t, cases)
}

// TestAdapterNames checks which parameters an adapter has.
func TestAdapterNames(t *testing.T) {
	p := newParams(t)
	must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 5, Dim: 4, Layers: 1, Positions: layers.NoPositions{}, Block: layers.BlockConfig{
		FeedForward: layers.FeedForwardConfig{Gated: true, NoBias: true}}}))(t)
	linears := []string{"attention.query", "attention.key", "attention.value", "attention.output", "feedforward.gate", "feedforward.up", "feedforward.down"}
	var all []string
	for _, name := range linears {
		all = append(all, "blocks.0."+name+".lora_a", "blocks.0."+name+".lora_b")
	}
	for _, tc := range []struct {
		config layers.LowRank
		want   []string
	}{
		{layers.LowRank{}, all},
		{layers.LowRank{Targets: []string{"key", "head"}}, []string{"head.lora_a", "head.lora_b", "blocks.0.attention.key.lora_a", "blocks.0.attention.key.lora_b"}},
		{layers.LowRank{Targets: []string{"blocks.0.attention.key", "key"}}, all[2:4]},
		{layers.LowRank{Targets: []string{"up"}, Joint: [][]string{{"gate", "up"}}, Whole: []string{"head.bias", "down"}}, []string{
			"head.bias", "blocks.0.feedforward.gate+up.lora_a", "blocks.0.feedforward.gate.lora_b", "blocks.0.feedforward.up.lora_b", "blocks.0.feedforward.down.weight"}},
	} {
		tc.config.Rank = 3
		a := must.Get(layers.NewAdapter(p, tc.config, 1))(t)
		var got []string
		for _, q := range a.Params.All() {
			got = append(got, q.Name)
			base := p.Get(strings.NewReplacer(".lora_a", ".weight", ".lora_b", ".weight", "gate+", "").Replace(q.Name)).Value.Shape().Clone()
			switch q.Name[len(q.Name)-6:] {
			case "lora_a":
				base[0] = 3
			case "lora_b":
				base[1] = 3
			}
			if !q.Value.Shape().Eq(base) {
				t.Errorf("%s has shape %v, want %v", q.Name, q.Value.Shape(), base)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%+v: got %v, want %v", tc.config, got, tc.want)
		}
	}
}

func TestAdapterErrors(t *testing.T) {
	p := newParams(t)
	must.Get(layers.NewFeedForward(p, 4, layers.FeedForwardConfig{}))(t)
	for want, c := range map[string]layers.LowRank{
		"Rank must be at least 1, got 0":                  {},
		"at least 0 and below 1, got 1":                   {Rank: 1, Dropout: 1},
		"Alpha must be at most 1e+15 in size, got 1e+300": {Rank: 1, Alpha: 1e300},
		`no layer is named "uo": Targets can be down, up or their full scopes, and Whole any scope; did you mean up?`: {Rank: 1, Targets: []string{"up", "uo"}},
		`no layer is named "p"`:                                  {Rank: 1, Whole: []string{"p"}},
		"inputs of the same width, got 4 before and 16 for down": {Rank: 1, Joint: [][]string{{"up", "down"}}},
	} {
		must.Refuse(layers.NewAdapter(p, c, 1))(t, "adapter: ", want)
	}
	a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 1}, 1))(t)
	other, another := newParams(t), newParams(t)
	must.Get(layers.NewFeedForward(other, 5, layers.FeedForwardConfig{}))(t)
	must.Get(layers.NewLinear(another.Scope("up"), 4, 16, layers.LinearConfig{}))(t)
	must.Fail(t, a.Merge(other), `"up.lora_a" must have shape (1, 5), got (1, 4)`)
	before := another.Snapshot()
	randomise(a.Params)
	must.Fail(t, a.Merge(another), `no layer for "down.lora_a"`)
	sameBits(t, "the weight after an error", another.All()[0].Value.Float64s(), before[0].Float64s())
	must.Refuse(layers.NewAdapter(newParams(t), layers.LowRank{Rank: 1}, 1))(t, "the model has no Linear besides heads")
}

// TestAdapters checks models of every kind with adapters. A new adapter changes no output. A trained one changes the
// loss as the merged model does. Only its own parameters are learned, and the graph has no gradient that nobody reads.
func TestAdapters(t *testing.T) {
	t.Parallel()
	block := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Activation: layers.SiLU}}
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p := must.Get(layers.NewParams(dt, 1))(t)
		for model, logits := range logitsOf(t, p, block, layers.Learned{MaxLen: 12}) {
			c := layers.LowRank{Rank: 2, Alpha: 3, Joint: [][]string{{"query", "key", "value"}}, Whole: []string{"norm2"}, Dropout: 0.3}
			a := must.Get(layers.NewAdapter(p, c, 1))(t)
			// run returns the loss and the logits, and the gradients in a graph for training.
			run := func(training bool, a *layers.Adapter) [][]float64 {
				b := &layers.Build{Training: training, Seed: 5, Adapter: a, Buffers: &layers.Buffers{}}
				b.Buffers.Spoil()
				l := newLossGraph(t, b, 2, 7, 13, logits)
				if training {
					for _, n := range b.Learnables() {
						if a.Params.Get(n.Name()) == nil {
							t.Errorf("%s: %s is learned", model, n.Name())
						}
					}
					l.noWaste(t, model)
				}
				return l.run(t, 3)
			}
			base := run(false, nil)
			sameBits(t, model+": a new adapter", run(false, a)[1], base[1])
			for i, q := range a.Params.All() {
				if strings.Contains(q.Name, "lora_") {
					must.Do(t, q.Value.Memset(as(dt, random(uint64(i), 1)).Get(0)))
				}
			}
			got, merged := run(false, a), p.Snapshot()
			must.Do(t, a.Merge(p))
			tol := map[tensor.Dtype]float64{tensor.Float32: 1e-4, tensor.Float64: 1e-12}[dt]
			near(t, fmt.Sprintf("%s, %v: merged", model, dt), got[1], run(false, nil)[1], tol)
			must.Do(t, p.Restore(merged))
			if slices.Equal(got[1], base[1]) {
				t.Errorf("%s: the adapter changes nothing", model)
			}
			if grads := run(true, a)[2:]; len(grads) == 0 || slices.ContainsFunc(grads, allZero) {
				t.Errorf("%s: %d gradients, or one of them is 0", model, len(grads))
			}
		}
	}
}

// TestAdapterDropout checks that layers with the same input share one dropout mask of the adapter, and that their own
// weights get the input without dropout.
func TestAdapterDropout(t *testing.T) {
	p := newParams(t)
	var linears []*layers.Linear
	for _, name := range []string{"a", "b"} {
		linears = append(linears, must.Get(layers.NewLinear(p.Scope(name), 4, 3, layers.LinearConfig{NoBias: true}))(t))
	}
	a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 2, Alpha: 3, Dropout: 0.5}, 1))(t)
	randomise(a.Params)
	// outputs returns both layers' outputs for an input, or for the input after dropout.
	outputs := func(b *layers.Build, drop float64) [][]float64 {
		x := must.Get(layers.Dropout{P: drop}.Forward(b, input(G.NewGraph(), "x", random(1, 5, 4))))(t)
		return read(t, must.Get(linears[0].Forward(b, x))(t), must.Get(linears[1].Forward(b, x))(t))
	}
	training := layers.Build{Training: true, Seed: 3}
	adapted, dropped := training, training
	adapted.Adapter = a
	got, whole, without := outputs(&adapted, 0), outputs(&layers.Build{}, 0), outputs(&dropped, 0.5)
	must.Do(t, a.Merge(p))
	merged := outputs(&training, 0.5)
	for i := range got {
		for j := range got[i] {
			merged[i][j] += whole[i][j] - without[i][j]
		}
		near(t, "adapted with dropout", got[i], merged[i], 1e-12)
	}
}
