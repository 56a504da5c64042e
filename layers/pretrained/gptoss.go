package pretrained

import (
	"cmp"

	"github.com/heed-go/heed/layers"
)

// gptOss is the architecture of gpt-oss: sinks, every second block with a window, and experts with a limited gate. Its
// files have the weights of all experts in one tensor, with gates and other hidden units in turn. Quantised weights,
// in which the models are published first, don't open.
var gptOss = architecture{
	class: "GptOssForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
		"num_key_value_heads": 8, "head_dim": 64, "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
		"sliding_window": 128, "attention_bias": true, "num_local_experts": 128, "num_experts_per_tok": 4, "swiglu_limit": 7, "swiglu_alpha": 1.702,
		"rope_parameters": {"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": false,
			"original_max_position_embeddings": 4096}, "rope_theta": 150000}`,
	aliases: map[string]string{"num_experts": "num_local_experts"},
	model: changed(gatedModel, func(m *layers.ModelConfig) {
		m.Block.Attention, m.Block.FeedForward = layers.AttentionConfig{Sinks: true}, layers.FeedForwardConfig{Gated: true}
	}),
	classifier: lastToken, heads: joined(textHeads, scoreTags),
	names: append([]string{
		"blocks.{i}.attention.sinks layers.{i}.self_attn.sinks", "blocks.{i}.feedforward.router layers.{i}.mlp.router",
		"blocks.{i}.feedforward.gate+up layers.{i}.mlp.experts.gate_up_proj stacked", "blocks.{i}.feedforward.down layers.{i}.mlp.experts.down_proj stacked",
	}, gatedNames...),
	config: func(k *keys, c *Config) {
		if !k.writing && len(k.object("rope_scaling", "rope_parameters").values) == 0 {
			k.fail(unsupported("rope_parameters", nil, "an object, or no such key for the usual positions"))
		}
		k.gated(c)
		c.Model.Block.FeedForward.Activation = layers.SiLU                  // whatever hidden_act says
		window := cmp.Or(slidingWindow(c.Model), &layers.Window{Left: 127}) // the reference library needs one, even if no block has it
		k.copy("attention_bias", (*not)(&c.Model.Block.Attention.NoBias), "sliding_window", &window)
		k.only("swiglu_alpha", 1.702)
		k.layerTypes(&c.Model, window, nil, func(i int) bool { return i%2 == 0 })
		x := k.experts(c, "num_local_experts")
		x.RouterBias = true
		k.copy("swiglu_limit", &x.Limit)
	},
}
