package pretrained

import "github.com/heed-go/heed/layers"

// stableLM is the architecture of StableLM. A quarter of a head is rotated.
var stableLM = architecture{
	class: "StableLmForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers": 32, "num_attention_heads": 32,
		"num_key_value_heads": 32, "hidden_act": "silu", "max_position_embeddings": 4096, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25,
		"use_qkv_bias": false, "bos_token_id": 0, "eos_token_id": 0}`,
	model:      changed(qwen2.model, func(m *layers.ModelConfig) { m.Block.Norm = layers.NormConfig{} }),
	classifier: lastToken, names: gatedNames, heads: joined(textHeads, scoreTags),
	config: func(k *keys, c *Config) {
		if v := k.get("head_dim"); v != nil { // the reference library reads it for positions only
			k.fail(unsupported("head_dim", v, "null"))
		}
		k.gated(c)
		delete(k.values, "head_dim")
		k.copy("layer_norm_eps", &c.Model.Block.Norm.Eps, "use_qkv_bias", (*not)(&c.Model.Block.Attention.NoBias), "hidden_dropout", &c.Model.Block.Dropout)
		k.only("qk_layernorm", false, "use_parallel_residual", false)
	},
}
