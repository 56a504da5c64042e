package decode_test

import (
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// TestCacheMemory checks that a session's memory is proportional to its capacity: a key and a value for each token,
// layer and number of the model's width.
func TestCacheMemory(t *testing.T) {
	d := newDecoder(t, tensor.Float32, layers.ModelConfig{Vocab: 20, Dim: 64, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 2, Positions: layers.Rotary{}})
	grown := func(capacity int) float64 {
		before := memory.HeapInUse()
		s := newSession(t, d, decode.Config{Batch: 2, Capacity: capacity})
		must.Get(s.Step([][]int{{1, 2, 3}, {4}}))(t)
		defer s.Close()
		return float64(memory.HeapInUse()) - float64(before)
	}
	const tokens = 10_000
	perToken := (grown(2*tokens) - grown(tokens)) / tokens
	if want := 2.0 * 2 * 2 * 64 * 4; perToken < 0.9*want || perToken > 1.1*want {
		t.Errorf("a token of capacity takes %.0f bytes, want %.0f", perToken, want)
	}
}

// TestGraphsAreFreed opens and closes many sessions. It then gives one session prompts of many lengths, which share a
// few graphs. Memory use doesn't grow.
func TestGraphsAreFreed(t *testing.T) {
	d := newDecoder(t, tensor.Float32, layers.ModelConfig{Vocab: 20, Dim: 32, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 2, Positions: layers.Rotary{}})
	const rounds, limit = 30, 2 << 20 // a graph takes about 300 kB
	run := func(s *decode.Session, tokens int) {
		must.Get(s.Step([][]int{make([]int, tokens)}))(t)
		s.Reset()
	}
	before := memory.HeapInUse()
	for range rounds {
		s := newSession(t, d, decode.Config{Capacity: 128})
		run(s, 3)
		s.Close()
	}
	if grown := memory.HeapInUse() - before; grown > limit {
		t.Errorf("%d sessions left %d bytes, want at most %d", rounds, grown, limit)
	}
	s := newSession(t, d, decode.Config{Capacity: 128})
	run(s, 1)
	before = memory.HeapInUse()
	for i := range rounds {
		run(s, 2+i)
	}
	if grown := memory.HeapInUse() - before; grown > limit {
		t.Errorf("%d prompt lengths left %d bytes, want at most %d", rounds, grown, limit)
	}
}
