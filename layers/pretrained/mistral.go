package pretrained

// mistral is the architecture of Mistral 7B and its successors.
var mistral = architecture{
	class: "MistralForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
		"num_key_value_heads": 8, "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "sliding_window": 4096,
		"bos_token_id": 1, "eos_token_id": 2}`,
	model: gatedModel, classifier: lastToken, names: gatedNames, heads: joined(textHeads, scoreTags, spanHeads),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("sliding_window", &c.Model.Block.Attention.Window)
	},
}
