package pretrained

import "github.com/heed-go/heed/layers"

// gptNeoX is the architecture of GPT-NeoX and Pythia. Each head has rows of its own for query, key and value.
var gptNeoX = architecture{
	class: "GPTNeoXForCausalLM", causal: true, prefix: "gpt_neox.",
	defaults: `{"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576,
		"hidden_act": "gelu", "rotary_pct": 0.25, "rotary_emb_base": 10000, "max_position_embeddings": 2048, "layer_norm_eps": 1e-5,
		"use_parallel_residual": true, "bos_token_id": 0, "eos_token_id": 2}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken,
	config: func(k *keys, c *Config) {
		m := &c.Model
		a, f := &m.Block.Attention, &m.Block.FeedForward
		k.int("vocab_size", &m.Vocab)
		k.int("hidden_size", &m.Dim)
		k.layers("num_hidden_layers", m)
		k.int("num_attention_heads", &a.Heads)
		k.int("intermediate_size", &f.Hidden)
		k.activation("hidden_act", &f.Activation)
		k.float("layer_norm_eps", &m.Block.Norm.Eps)
		k.float("hidden_dropout", &m.Block.Dropout)
		k.float("attention_dropout", &a.Dropout)
		k.not("attention_bias", &a.NoBias)
		k.bool("use_parallel_residual", &m.Block.Parallel)
		k.bool("tie_word_embeddings", &m.Tied)
		k.int("max_position_embeddings", &c.MaxLen)
		k.rotary(c, "rotary_emb_base", "rotary_pct")
	},
	names: []name{
		{ours: "embedding", theirs: "embed_in"},
		{ours: "blocks.{i}.norm1", theirs: "layers.{i}.input_layernorm"},
		{ours: "blocks.{i}.attention.query+key+value", theirs: "layers.{i}.attention.query_key_value", how: layers.Tensor{Groups: -1}},
		{ours: "blocks.{i}.attention.output", theirs: "layers.{i}.attention.dense"},
		{ours: "blocks.{i}.norm2", theirs: "layers.{i}.post_attention_layernorm"},
		{ours: "blocks.{i}.feedforward.up", theirs: "layers.{i}.mlp.dense_h_to_4h"},
		{ours: "blocks.{i}.feedforward.down", theirs: "layers.{i}.mlp.dense_4h_to_h"},
		{ours: "norm", theirs: "final_layer_norm"},
	},
	heads: map[string][]name{"text": {{ours: "head", theirs: "embed_out|lm_head"}}, "classes": {{ours: "head", theirs: "score"}}},
}
