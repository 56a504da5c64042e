package pretrained

import "github.com/heed-go/heed/layers"

// electra is the architecture of ELECTRA: BERT whose embeddings may be narrower than its blocks. Most published models
// are discriminators, whose head tells replaced tokens: they open without it.
var electra = architecture{
	class: "ElectraForMaskedLM", prefix: "electra.", ownPretraining: true,
	defaults: `{"vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 4,
		"intermediate_size": 1024, "type_vocab_size": 2, "pad_token_id": 0, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
		"attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "layer_norm_eps": 1e-12, "tie_word_embeddings": true}`,
	model: postNormModel, classifier: firstToken(layers.GELU),
	config: func(k *keys, c *Config) {
		k.bert(c)
		k.narrow(c, false, layers.ProjectionConfig{})
		k.segments(c)
		k.learned("max_position_embeddings", c, 0)
		k.maskHead(c, layers.GELU)
	},
	names: append([]string{"segments embeddings.token_type_embeddings", "positions embeddings.position_embeddings", "projection embeddings_project"}, bertNames...),
	heads: joined(tokenHeads, map[string][]string{
		"mask":    {"transform.linear generator_predictions.dense", "transform.norm generator_predictions.LayerNorm", "head generator_lm_head"},
		"classes": {"transform.linear classifier.dense", "head classifier.out_proj"},
	}),
}

// narrow copies the width of the embeddings. If it differs from the blocks' width, or always, the model gets the
// projection p.
func (k *keys) narrow(c *Config, always bool, p layers.ProjectionConfig) {
	width := c.Model.EmbeddingWidth()
	if k.copy("embedding_size", &width); k.writing {
		return
	}
	if c.Model.Projection = nil; always || width != c.Model.Dim {
		p.Dim = width
		c.Model.Projection = &p
	}
}
