package pretrained

import "github.com/heed-go/heed/layers"

// distilbert is the architecture of DistilBERT.
var distilbert = architecture{
	class: "DistilBertForMaskedLM", prefix: "distilbert.",
	defaults: `{"vocab_size": 30522, "max_position_embeddings": 512, "n_layers": 6, "n_heads": 12, "dim": 768, "hidden_dim": 3072, "dropout": 0.1,
		"attention_dropout": 0.1, "activation": "gelu", "pad_token_id": 0, "tie_word_embeddings": true}`,
	model:      layers.ModelConfig{EmbeddingScale: 1, EmbeddingNorm: true, Block: layers.BlockConfig{PostNorm: true, Norm: layers.NormConfig{Eps: 1e-12}}},
	classifier: firstToken(layers.ReLU),
	aliases:    map[string]string{"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.copy("vocab_size", &m.Vocab, "dim", &m.Dim, "n_layers", &m.Layers, "n_heads", &a.Heads, "hidden_dim", &f.Hidden, "activation", &f.Activation,
			"dropout", &m.Block.Dropout, "dropout", &m.Dropout, "attention_dropout", &a.Dropout, "tie_word_embeddings", &m.Tied)
		k.learned("max_position_embeddings", c, 0)
		k.maskHead(c, f.Activation)
	},
	names: []string{
		"embedding embeddings.word_embeddings", "positions embeddings.position_embeddings", "embeddingnorm embeddings.LayerNorm",
		"blocks.{i}.attention.query transformer.layer.{i}.attention.q_lin", "blocks.{i}.attention.key transformer.layer.{i}.attention.k_lin",
		"blocks.{i}.attention.value transformer.layer.{i}.attention.v_lin", "blocks.{i}.attention.output transformer.layer.{i}.attention.out_lin",
		"blocks.{i}.norm1 transformer.layer.{i}.sa_layer_norm", "blocks.{i}.norm2 transformer.layer.{i}.output_layer_norm",
		"blocks.{i}.feedforward.up transformer.layer.{i}.ffn.lin1", "blocks.{i}.feedforward.down transformer.layer.{i}.ffn.lin2",
	},
	heads: joined(tokenHeads, map[string][]string{
		"mask":    {"transform.linear vocab_transform", "transform.norm vocab_layer_norm", "head vocab_projector"},
		"classes": {"transform.linear pre_classifier", "head classifier"},
	}),
}
