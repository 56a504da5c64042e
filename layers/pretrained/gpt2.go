package pretrained

import "github.com/heed-go/heed/layers"

// gpt2 is the architecture of GPT-2 and DistilGPT-2. Its matrices are transposed.
var gpt2 = architecture{
	class: "GPT2LMHeadModel", causal: true, prefix: "transformer.",
	defaults: `{"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "activation_function": "gelu_new",
		"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-5, "bos_token_id": 50256, "eos_token_id": 50256,
		"tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken, heads: joined(textHeads, tokenHeads),
	aliases: map[string]string{"hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.copy("vocab_size", &m.Vocab, "n_embd", &m.Dim, "n_layer", &m.Layers, "n_head", &a.Heads, "n_inner", &f.Hidden,
			"activation_function", &f.Activation, "layer_norm_epsilon", &m.Block.Norm.Eps, "tie_word_embeddings", &m.Tied,
			"resid_pdrop", &m.Block.Dropout, "embd_pdrop", &m.Dropout, "attn_pdrop", &a.Dropout)
		k.learned("n_positions", c, 0)
	},
	names: []string{
		"embedding wte", "positions wpe", "norm ln_f", "blocks.{i}.norm1 h.{i}.ln_1", "blocks.{i}.norm2 h.{i}.ln_2",
		"blocks.{i}.attention.query+key+value h.{i}.attn.c_attn transposed", "blocks.{i}.attention.output h.{i}.attn.c_proj transposed",
		"blocks.{i}.feedforward.up h.{i}.mlp.c_fc transposed", "blocks.{i}.feedforward.down h.{i}.mlp.c_proj transposed",
	},
}
