package pretrained

// ernie45 is the architecture of the dense models of ERNIE 4.5. Neighbouring numbers of a head are rotated together.
var ernie45 = architecture{
	class: "Ernie4_5ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18, "num_attention_heads": 16,
		"num_key_value_heads": 2, "head_dim": 128, "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
		"rope_theta": 500000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": true}`,
	model: deepseekModel, classifier: lastToken, names: gatedNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		_, a, f := c.parts()
		k.gated(c)
		if k.copy("use_bias", (*not)(&a.NoBias)); !k.writing {
			f.NoBias = a.NoBias
		}
	},
}
