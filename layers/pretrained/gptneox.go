package pretrained

import "github.com/heed-go/heed/layers"

// gptNeoX is the architecture of GPT-NeoX and Pythia. Each head has rows of its own for query, key and value.
var gptNeoX = architecture{
	class: "GPTNeoXForCausalLM", causal: true, prefix: "gpt_neox.",
	defaults: `{"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576,
		"hidden_act": "gelu", "rotary_pct": 0.25, "max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "use_parallel_residual": true,
		"bos_token_id": 0, "eos_token_id": 2}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken,
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.copy("vocab_size", &m.Vocab, "hidden_size", &m.Dim, "num_hidden_layers", &m.Layers, "num_attention_heads", &a.Heads,
			"intermediate_size", &f.Hidden, "hidden_act", &f.Activation, "layer_norm_eps", &m.Block.Norm.Eps, "max_position_embeddings", &c.MaxLen,
			"attention_bias", (*not)(&a.NoBias), "use_parallel_residual", &m.Block.Parallel, "tie_word_embeddings", &m.Tied,
			"hidden_dropout", &m.Block.Dropout, "attention_dropout", &a.Dropout)
		k.rotary(c, "rotary_emb_base", "rotary_pct")
	},
	names: []string{
		"embedding embed_in", "norm final_layer_norm",
		"blocks.{i}.norm1 layers.{i}.input_layernorm", "blocks.{i}.norm2 layers.{i}.post_attention_layernorm",
		"blocks.{i}.attention.query+key+value layers.{i}.attention.query_key_value heads", "blocks.{i}.attention.output layers.{i}.attention.dense",
		"blocks.{i}.feedforward.up layers.{i}.mlp.dense_h_to_4h", "blocks.{i}.feedforward.down layers.{i}.mlp.dense_4h_to_h",
	},
	heads: joined(textHeads, tokenHeads, map[string][]string{"text": {"head embed_out|lm_head"}}),
}
