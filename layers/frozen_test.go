package layers_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// TestFrozenParametersCostNothing freezes parts of models of every kind. The graph then has no gradient that nobody
// reads, needs less memory, and gives the other parameters gradients with the same bits as without frozen parts.
func TestFrozenParametersCostNothing(t *testing.T) {
	t.Parallel()
	blocks := map[string]layers.BlockConfig{
		"gelu":       {Attention: layers.AttentionConfig{Heads: 2, Dropout: 0.2}, Dropout: 0.1},
		"gated, rms": {Attention: layers.AttentionConfig{Heads: 2, KeyValueHeads: 1}, FeedForward: layers.FeedForwardConfig{Activation: layers.SiLU, Gated: true}, Norm: layers.NormConfig{Kind: "rms"}},
	}
	positions := map[string]layers.PositionsConfig{"gelu": layers.RelativeBias{Buckets: 4, MaxDistance: 3}, "gated, rms": layers.Learned{MaxLen: 12}}
	for name, block := range blocks {
		for composed, dt := range map[bool]tensor.Dtype{false: tensor.Float32, true: tensor.Float64} {
			p := must.Get(layers.NewParams(dt, 1))(t)
			for model, logits := range logitsOf(t, p, block, positions[name]) {
				// build freezes all parameters whose name doesn't match and returns the parameters' gradients by name
				// and the bytes of the graph's memory.
				build := func(learned string) (grads map[string][]float64, bytes int) {
					for _, q := range p.All() {
						q.Frozen = !regexp.MustCompile(learned).MatchString(q.Name)
					}
					b := &layers.Build{Training: true, Seed: 5, Composed: composed, Buffers: &layers.Buffers{}}
					b.Buffers.Spoil()
					l := newLossGraph(t, b, 2, 7, 13, logits)
					bytes = l.noWaste(t, fmt.Sprintf("%s, learned %q", model, learned))
					grads = map[string][]float64{}
					for i, values := range l.run(t, 3)[2:] {
						grads[b.Learnables()[i].Name()] = values
					}
					return grads, bytes
				}
				name := fmt.Sprintf("%s/%s/composed %t", model, name, composed)
				if testseed.LeftOut(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					want, whole := build(".")
					for _, learned := range []string{`head|\.norm\.`, `head|blocks\.1`, "query.weight", "bias|norm", "value.bias", "blocks.0.*(query|value)", "embedding"} {
						grads, bytes := build(learned)
						for name, values := range grads {
							sameBits(t, fmt.Sprintf("learned %q: gradient of %s", learned, name), values, want[name])
						}
						if bytes >= whole {
							t.Errorf("learned %q: the graph needs %d bytes, and %d with all parameters learned", learned, bytes, whole)
						}
					}
				})
			}
		}
	}
}

// noWaste checks that the graph has no node that nobody reads besides the gradients of parameters and the loss's Count.
// It returns the bytes of the graph's memory.
func (l *lossGraph) noWaste(t *testing.T, what string) int {
	t.Helper()
	g := l.grads[0].Graph()
	for _, n := range g.AllNodes() {
		if g.To(n.ID()).Len() == 0 && !slices.Contains(l.grads, n) && n != l.count && n.Op() != nil && n.Type() != nil { // neither an input nor a gorgonia.Read
			t.Errorf("%s: nobody reads %v", what, n)
		}
	}
	bytes, _, err := ops.Plan(g)
	must.Do(t, err)
	return bytes
}
