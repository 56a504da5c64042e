package pretrained

import "github.com/heed-go/heed/layers"

// glm4 is the architecture of GLM 4. The inputs and outputs of sub-layers are normalised, and half of a head is
// rotated, neighbouring numbers together.
var glm4 = architecture{
	class: "Glm4ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32,
		"num_key_value_heads": 2, "head_dim": 128, "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1.5625e-7,
		"partial_rotary_factor": 0.5, "attention_bias": true, "pad_token_id": 151329, "eos_token_id": [151329, 151336, 151338]}`,
	model: changed(deepseekModel, func(m *layers.ModelConfig) {
		m.Block.Attention, m.Block.OutputNorm = layers.AttentionConfig{OutputBias: new(bool)}, true
	}),
	classifier: lastToken, heads: joined(textHeads, scoreTags),
	names: append([]string{
		"blocks.{i}.norm1out layers.{i}.post_self_attn_layernorm", "blocks.{i}.norm2out layers.{i}.post_mlp_layernorm",
		"blocks.{i}.feedforward.gate+up layers.{i}.mlp.gate_up_proj",
	}, gatedNames...),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("attention_bias", (*not)(&c.Model.Block.Attention.NoBias))
	},
}
