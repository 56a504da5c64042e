package pretrained

import "github.com/heed-go/heed/layers"

const qwenDefaults = `"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
	"num_key_value_heads": 32, "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "sliding_window": 4096,
	"max_window_layers": 28}`

// qwen2 is the architecture of Qwen 2 and 2.5. Of the projections of attention, only the output has no bias.
var qwen2 = architecture{
	class: "Qwen2ForCausalLM", causal: true, prefix: "model.", defaults: "{" + qwenDefaults,
	model:      changed(gatedModel, func(m *layers.ModelConfig) { m.Block.Attention = layers.AttentionConfig{OutputBias: new(bool)} }),
	classifier: lastToken, names: gatedNames, heads: joined(textHeads, scoreTags, oldSpans),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.qwenWindows(c)
	},
}

// qwen3 is the architecture of the dense models of Qwen 3.
var qwen3 = architecture{
	class: "Qwen3ForCausalLM", causal: true, prefix: "model.", defaults: `{"head_dim": 128, ` + qwenDefaults,
	model: gatedModel, classifier: lastToken, names: gatedNames, heads: joined(textHeads, scoreTags, oldSpans),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("attention_bias", (*not)(&c.Model.Block.Attention.NoBias))
		k.queryKeyNorm(c)
		k.qwenWindows(c)
	},
}

// queryKeyNorm gives attention norms of queries and keys, with the Eps of the other norms.
func (k *keys) queryKeyNorm(c *Config) {
	if a := &c.Model.Block.Attention; !k.writing {
		a.QKNorm, a.NormEps = true, c.Model.Block.Norm.Eps
	}
}

// qwenWindows copies the sliding window, which use_sliding_window turns on.
func (k *keys) qwenWindows(c *Config) {
	window, first := slidingWindow(c.Model), 0
	used := window != nil
	if k.copy("use_sliding_window", &used, "sliding_window", &window, "max_window_layers", &first); !used {
		window = nil
	}
	k.layerTypes(&c.Model, window, nil, func(i int) bool { return i >= first })
}
