package pretrained

import (
	"fmt"

	"github.com/heed-go/heed/layers"
)

// albert is the architecture of ALBERT: BERT with narrow embeddings, whose blocks share their weights.
var albert = architecture{
	class: "AlbertForMaskedLM", prefix: "albert.",
	defaults: `{"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12, "num_hidden_groups": 1, "num_attention_heads": 64,
		"intermediate_size": 16384, "type_vocab_size": 2, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "hidden_act": "gelu_new",
		"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 512, "layer_norm_eps": 1e-12, "tie_word_embeddings": true}`,
	model: postNormModel, classifier: firstToken(layers.Tanh),
	config: func(k *keys, c *Config) {
		k.bert(c)
		k.narrow(c, true, layers.ProjectionConfig{})
		k.segments(c)
		k.learned("max_position_embeddings", c, 0)
		k.maskHead(c, c.Model.Block.FeedForward.Activation)
		m := &c.Model
		if k.copy("num_hidden_groups", &m.Shared); m.Shared < 1 || m.Layers%m.Shared != 0 {
			k.fail(unsupported("num_hidden_groups", m.Shared, fmt.Sprintf("a number that divides the %d layers", m.Layers)))
		}
	},
	names: []string{
		"embedding embeddings.word_embeddings", "segments embeddings.token_type_embeddings", "positions embeddings.position_embeddings",
		"embeddingnorm embeddings.LayerNorm", "projection encoder.embedding_hidden_mapping_in",
		"blocks.{i}.attention.query encoder.albert_layer_groups.{i}.albert_layers.0.attention.query",
		"blocks.{i}.attention.key encoder.albert_layer_groups.{i}.albert_layers.0.attention.key",
		"blocks.{i}.attention.value encoder.albert_layer_groups.{i}.albert_layers.0.attention.value",
		"blocks.{i}.attention.output encoder.albert_layer_groups.{i}.albert_layers.0.attention.dense",
		"blocks.{i}.norm1 encoder.albert_layer_groups.{i}.albert_layers.0.attention.LayerNorm",
		"blocks.{i}.norm2 encoder.albert_layer_groups.{i}.albert_layers.0.full_layer_layer_norm",
		"blocks.{i}.feedforward.up encoder.albert_layer_groups.{i}.albert_layers.0.ffn",
		"blocks.{i}.feedforward.down encoder.albert_layer_groups.{i}.albert_layers.0.ffn_output",
	},
	heads: joined(tokenHeads, map[string][]string{
		"mask": {"transform.linear predictions.dense", "transform.norm predictions.LayerNorm",
			"head.bias predictions.decoder.bias|predictions.bias", "head predictions.decoder"},
		"classes": {"transform.linear albert.pooler|pooler", "head classifier"},
	}),
}
