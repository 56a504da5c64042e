package pretrained

import "github.com/heed-go/heed/layers"

// starcoder2 is the architecture of StarCoder 2.
var starcoder2 = architecture{
	class: "Starcoder2ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30, "num_attention_heads": 24,
		"num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 4096, "norm_epsilon": 1e-5, "use_bias": true,
		"bos_token_id": 50256, "eos_token_id": 50256, "tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1}, classifier: lastToken, heads: joined(textHeads, scoreTags),
	names: append([]string{"blocks.{i}.feedforward.up layers.{i}.mlp.c_fc", "blocks.{i}.feedforward.down layers.{i}.mlp.c_proj"}, gatedNames...),
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.gated(c)
		k.copy("norm_epsilon", &m.Block.Norm.Eps, "sliding_window", &a.Window, "embedding_dropout", &m.Dropout, "residual_dropout", &m.Block.Dropout,
			"use_bias", (*not)(&a.NoBias))
		if !k.writing {
			f.NoBias = a.NoBias
		}
	},
}
