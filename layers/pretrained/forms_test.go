package pretrained

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// Save without a Type must find an architecture that computes the same, or name the nearest one.
func TestSaveChooses(t *testing.T) {
	gated := layers.BlockConfig{
		Attention:   layers.AttentionConfig{Heads: 2, NoBias: true},
		FeedForward: layers.FeedForwardConfig{Gated: true, NoBias: true, Activation: layers.SiLU},
		Norm:        layers.NormConfig{Kind: "rms"},
	}
	heads := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}
	plain := heads
	plain.Attention.NoBias, plain.FeedForward.NoBias, plain.Norm.NoBias = true, true, true
	dropping := heads
	dropping.Dropout, dropping.FeedForward.Dropout, dropping.FeedForward.Activation = 0.1, 0.2, layers.GELU
	ungated := gated
	ungated.FeedForward.Gated = false
	learned := layers.Learned{MaxLen: 9}
	for name, test := range map[string]struct {
		m    layers.ModelConfig
		want string // the type, or parts of the error
	}{
		"head with bias":       {layers.ModelConfig{Positions: learned, Block: heads}, "gpt2"},
		"dropout":              {layers.ModelConfig{Positions: learned, Block: dropping, Dropout: 0.3}, "gpt2"},
		"scale":                {layers.ModelConfig{Positions: learned, Block: heads, EmbeddingScale: 3}, "gpt2"},
		"tied":                 {layers.ModelConfig{Positions: learned, Block: heads, Tied: true}, "gpt2"},
		"tied with bias":       {layers.ModelConfig{Positions: learned, Block: heads, Tied: true, TiedBias: true, EmbeddingScale: 1}, "gpt2"},
		"tied without scale":   {layers.ModelConfig{Positions: learned, Block: heads, Tied: true, EmbeddingScale: 1}, "gpt2"},
		"without biases":       {layers.ModelConfig{Positions: learned, Block: plain, NoBias: true}, "gpt2"},
		"only a head bias":     {layers.ModelConfig{Positions: learned, Block: plain}, "opt"},
		"rotary":               {layers.ModelConfig{Positions: layers.Rotary{}, Block: heads}, "gpt_neox"},
		"llama":                {layers.ModelConfig{Positions: layers.Rotary{}, Block: gated, NoBias: true}, "llama"},
		"llama, tied":          {layers.ModelConfig{Positions: layers.Rotary{}, Block: gated, Tied: true, EmbeddingScale: 1}, "llama"},
		"granite":              {layers.ModelConfig{Positions: layers.Rotary{}, Block: gated, Tied: true}, "granite"},
		"granite, scaled head": {layers.ModelConfig{Positions: layers.Rotary{}, Block: gated, NoBias: true, HeadScale: 0.3}, "granite"},
		"llama with head bias": {layers.ModelConfig{Positions: layers.Rotary{}, Block: gated}, "the nearest is llama: no_bias is false, and there it is true"},
		"ungated":              {layers.ModelConfig{Positions: layers.Rotary{}, Block: ungated, NoBias: true}, "the nearest is llama: block.feed_forward.gated is false, and there it is true"},
		"alibi":                {layers.ModelConfig{Positions: layers.ALiBi{}, Block: heads}, `the nearest is gpt2: positions.kind is "alibi", and there it is "learned"`},
		"sinusoidal":           {layers.ModelConfig{Positions: layers.Sinusoidal{}, Block: heads}, `the nearest is gpt2: positions.kind is "sinusoidal", and there it is "learned"`},
	} {
		t.Run(name, func(t *testing.T) {
			test.m.Vocab, test.m.Dim, test.m.Layers = 11, 12, 2
			c := Config{Head: "text", Causal: true, Model: test.m, MaxLen: 9, Start: -1, Pad: -1}
			p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
			m := &Model{Config: c, Params: p}
			m.Decoder = must.Get(layers.NewDecoder(p, c.Model))(t)
			r := rand.New(rand.NewPCG(1, 2))
			for _, q := range p.All() {
				for i, x := range q.Value.Float64s() {
					q.Value.Float64s()[i] = x + 0.3*r.NormFloat64()
				}
			}
			dir := filepath.Join(t.TempDir(), "saved")
			if err := Save(dir, c, p); err != nil {
				wantError(t, "Save", err, test.want)
				if _, err := os.Stat(dir); err == nil {
					t.Error("there is a folder in spite of the error")
				}
				c.Type = "gpt2"
				wantError(t, "Save", Save(dir, c, p), "gpt2: ")
				return
			}
			again := must.Get(Open(dir, tensor.Float64))(t)
			if again.Type != test.want || again.MaxLen != 9 || again.Start != -1 || again.Pad != -1 || len(again.End) > 0 {
				t.Errorf("saved as %+v, want type %s", again.Config, test.want)
			}
			ids := make([]int, 18)
			for i := range ids {
				ids[i] = r.IntN(11)
			}
			x := batch{ids: tensor.New(tensor.WithShape(2, 9), tensor.WithBacking(ids)), lengths: tensor.New(tensor.WithShape(2), tensor.WithBacking([]int{9, 9}))}
			compare(t, "logits", again.run(t, x, &layers.Build{}), m.run(t, x, &layers.Build{}), 1e-12, 1)
		})
	}
}

// TestWindows checks that config.json says which blocks have the window, also if all blocks have it, or none. The
// reference library wants its width in any case.
func TestWindows(t *testing.T) {
	for _, kind := range []string{"gemma2", "gemma3_text", "modernbert", "cohere2"} {
		for _, types := range []string{`["full_attention","full_attention"]`, `["sliding_attention","sliding_attention"]`, `["full_attention","sliding_attention"]`} {
			c := must.Get(ReadConfig(folder(`{"model_type": "` + kind + `", "num_hidden_layers": 2, "layer_types": ` + types + `}`)))(t)
			k, err := c.write(tensor.Float32)
			if err != nil {
				t.Errorf("%s with %s: %v", kind, types, err)
			} else if got := strings.TrimSpace(show(k.values["layer_types"])); got != types || k.values["sliding_window"] == nil && k.values["local_attention"] == nil {
				t.Errorf("%s with %s: wrote %s", kind, types, show(k.values))
			}
		}
	}
}
