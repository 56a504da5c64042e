package pretrained

import "github.com/heed-go/heed/layers"

// opt is the architecture of OPT. Its table of positions begins with two rows that no token has.
var opt = architecture{
	class: "OPTForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072, "max_position_embeddings": 2048,
		"dropout": 0.1, "num_attention_heads": 12, "activation_function": "relu", "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 2,
		"do_layer_norm_before": true, "enable_bias": true, "tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken, heads: textHeads,
	config: func(k *keys, c *Config) {
		m := &c.Model
		a, f := &m.Block.Attention, &m.Block.FeedForward
		k.int("vocab_size", &m.Vocab)
		k.int("hidden_size", &m.Dim)
		k.only("word_embed_proj_dim", m.Dim)
		k.only("_remove_final_layer_norm", false)
		k.only("layer_norm_elementwise_affine", true)
		k.layers("num_hidden_layers", m)
		k.int("num_attention_heads", &a.Heads)
		k.int("ffn_dim", &f.Hidden)
		k.activation("activation_function", &f.Activation)
		k.float("dropout", &m.Block.Dropout)
		k.float("attention_dropout", &a.Dropout)
		k.not("enable_bias", &a.NoBias)
		k.not("enable_bias", &f.NoBias)
		k.not("do_layer_norm_before", &m.Block.PostNorm)
		k.bool("tie_word_embeddings", &m.Tied)
		k.learned("max_position_embeddings", c)
	},
	names: []name{
		{ours: "embedding", theirs: "decoder.embed_tokens"},
		{ours: "positions", theirs: "decoder.embed_positions", how: layers.Tensor{SkipRows: 2}},
		{ours: "blocks.{i}.norm1", theirs: "decoder.layers.{i}.self_attn_layer_norm"},
		{ours: "blocks.{i}.attention.query", theirs: "decoder.layers.{i}.self_attn.q_proj"},
		{ours: "blocks.{i}.attention.key", theirs: "decoder.layers.{i}.self_attn.k_proj"},
		{ours: "blocks.{i}.attention.value", theirs: "decoder.layers.{i}.self_attn.v_proj"},
		{ours: "blocks.{i}.attention.output", theirs: "decoder.layers.{i}.self_attn.out_proj"},
		{ours: "blocks.{i}.norm2", theirs: "decoder.layers.{i}.final_layer_norm"},
		{ours: "blocks.{i}.feedforward.up", theirs: "decoder.layers.{i}.fc1"},
		{ours: "blocks.{i}.feedforward.down", theirs: "decoder.layers.{i}.fc2"},
		{ours: "norm", theirs: "decoder.final_layer_norm"},
	},
}
