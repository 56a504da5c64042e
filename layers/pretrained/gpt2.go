package pretrained

import "github.com/heed-go/heed/layers"

// gpt2 is the architecture of GPT-2 and DistilGPT-2. Its matrices are transposed.
var gpt2 = architecture{
	class: "GPT2LMHeadModel", causal: true, prefix: "transformer.",
	defaults: `{"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "activation_function": "gelu_new",
		"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-5, "bos_token_id": 50256, "eos_token_id": 50256,
		"tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken, heads: textHeads,
	config: func(k *keys, c *Config) {
		m := &c.Model
		a, f := &m.Block.Attention, &m.Block.FeedForward
		k.only("scale_attn_weights", true)
		k.only("scale_attn_by_inverse_layer_idx", false)
		k.only("add_cross_attention", false)
		k.int("vocab_size", &m.Vocab)
		k.int("n_embd", &m.Dim)
		k.layers("n_layer", m)
		k.int("n_head", &a.Heads)
		k.int("n_inner", &f.Hidden)
		k.activation("activation_function", &f.Activation)
		k.float("layer_norm_epsilon", &m.Block.Norm.Eps)
		k.float("resid_pdrop", &m.Block.Dropout)
		k.float("embd_pdrop", &m.Dropout)
		k.float("attn_pdrop", &a.Dropout)
		k.bool("tie_word_embeddings", &m.Tied)
		k.learned("n_positions", c)
	},
	names: []name{
		{ours: "embedding", theirs: "wte"},
		{ours: "positions", theirs: "wpe"},
		{ours: "blocks.{i}.norm1", theirs: "h.{i}.ln_1"},
		{ours: "blocks.{i}.attention.query+key+value", theirs: "h.{i}.attn.c_attn", how: layers.Tensor{Transposed: true}},
		{ours: "blocks.{i}.attention.output", theirs: "h.{i}.attn.c_proj", how: layers.Tensor{Transposed: true}},
		{ours: "blocks.{i}.norm2", theirs: "h.{i}.ln_2"},
		{ours: "blocks.{i}.feedforward.up", theirs: "h.{i}.mlp.c_fc", how: layers.Tensor{Transposed: true}},
		{ours: "blocks.{i}.feedforward.down", theirs: "h.{i}.mlp.c_proj", how: layers.Tensor{Transposed: true}},
		{ours: "norm", theirs: "ln_f"},
	},
}
