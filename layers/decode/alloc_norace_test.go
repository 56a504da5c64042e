//go:build !race

package decode_test

import (
	"runtime"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// TestSessionAllocations checks that a step with one token per sequence allocates memory only for the machine's nodes.
// That memory doesn't grow with the model's sizes.
func TestSessionAllocations(t *testing.T) {
	s := newSession(t, newDecoder(t, tensor.Float32, layers.ModelConfig{Vocab: 5000, Dim: 64, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}, Layers: 2, Positions: layers.Rotary{}}), decode.Config{Batch: 3, Capacity: 300})
	tokens := [][]int{{1}, {2}, {3}}
	step := func() { must.Get(s.Step(tokens))(t) }
	step()
	const steps = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range steps {
		step()
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / steps; got > 30_000 { // the logits alone take 120 kB
		t.Errorf("a step allocates %d bytes, want at most 30,000", got)
	}
}
