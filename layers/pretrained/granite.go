package pretrained

import "cmp"

// granite is the architecture of Granite 3: llama with factors of the embeddings, scores, sub-layers and logits.
var granite = architecture{
	class: "GraniteForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
		"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "attention_multiplier": 1, "bos_token_id": 1, "eos_token_id": 2}`,
	model: gatedModel, names: gatedNames, heads: map[string][]string{"text": textHeads["text"]},
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		divisor := 1 / cmp.Or(m.HeadScale, 1)
		k.gated(c)
		k.copy("attention_bias", (*not)(&a.NoBias), "mlp_bias", (*not)(&f.NoBias), "embedding_multiplier", &m.EmbeddingScale,
			"residual_multiplier", &m.Block.ResidualScale, "attention_multiplier", &a.Scale, "logits_scaling", &divisor)
		if !k.writing {
			m.HeadScale = 1 / divisor
		}
	},
}
