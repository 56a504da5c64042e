package pretrained

import "github.com/heed-go/heed/layers"

// opt is the architecture of OPT. Its table of positions begins with two rows that no token has.
var opt = architecture{
	class: "OPTForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072, "max_position_embeddings": 2048,
		"dropout": 0.1, "num_attention_heads": 12, "activation_function": "relu", "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 2,
		"do_layer_norm_before": true, "enable_bias": true, "tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken, heads: joined(textHeads, spanHeads),
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.copy("vocab_size", &m.Vocab, "hidden_size", &m.Dim, "num_hidden_layers", &m.Layers, "num_attention_heads", &a.Heads, "ffn_dim", &f.Hidden,
			"activation_function", &f.Activation, "enable_bias", (*not)(&a.NoBias), "enable_bias", (*not)(&f.NoBias),
			"do_layer_norm_before", (*not)(&m.Block.PostNorm), "tie_word_embeddings", &m.Tied,
			"dropout", &m.Block.Dropout, "attention_dropout", &a.Dropout)
		k.only("word_embed_proj_dim", m.Dim)
		k.learned("max_position_embeddings", c, 0)
	},
	names: []string{
		"embedding decoder.embed_tokens", "positions decoder.embed_positions skip2", "norm decoder.final_layer_norm",
		"blocks.{i}.norm1 decoder.layers.{i}.self_attn_layer_norm", "blocks.{i}.norm2 decoder.layers.{i}.final_layer_norm",
		"blocks.{i}.attention.query decoder.layers.{i}.self_attn.q_proj", "blocks.{i}.attention.key decoder.layers.{i}.self_attn.k_proj",
		"blocks.{i}.attention.value decoder.layers.{i}.self_attn.v_proj", "blocks.{i}.attention.output decoder.layers.{i}.self_attn.out_proj",
		"blocks.{i}.feedforward.up decoder.layers.{i}.fc1", "blocks.{i}.feedforward.down decoder.layers.{i}.fc2",
	},
}
