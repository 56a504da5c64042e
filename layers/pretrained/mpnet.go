package pretrained

import "github.com/heed-go/heed/layers"

// mpnet is the architecture of MPNet: BERT without token types. Besides a vector for each position, it has a bias for
// each distance.
var mpnet = architecture{
	class: "MPNetForMaskedLM", prefix: "mpnet.",
	defaults: `{"vocab_size": 30527, "relative_attention_num_buckets": 32, ` + robertaDefaults,
	model:    postNormModel, classifier: firstToken(layers.Tanh),
	config: func(k *keys, c *Config) {
		k.bert(c)
		k.only("relative_attention_num_buckets", 32)
		k.learned("max_position_embeddings", c, 2)
		c.Model.Positions = layers.PositionsList{Schemes: []layers.PositionsConfig{c.Model.Positions, layers.RelativeBias{Buckets: 32, MaxDistance: 128}}}
		k.maskHead(c, layers.GELU)
	},
	names: append([]string{
		"positions.0 embeddings.position_embeddings skip2", "positions.1 encoder.relative_attention_bias",
		"blocks.{i}.attention.query encoder.layer.{i}.attention.attn.q", "blocks.{i}.attention.key encoder.layer.{i}.attention.attn.k",
		"blocks.{i}.attention.value encoder.layer.{i}.attention.attn.v", "blocks.{i}.attention.output encoder.layer.{i}.attention.attn.o",
		"blocks.{i}.norm1 encoder.layer.{i}.attention.LayerNorm",
	}, bertNames...),
	heads: robertaHeads,
}
