package pretrained

import "github.com/heed-go/heed/layers"

// bert is the architecture of BERT and of models such as MiniLM. Its classifier reads the first token through a hidden
// layer, the pooler.
var bert = architecture{
	class: "BertForMaskedLM", prefix: "bert.",
	defaults: `{"vocab_size": 30522, "type_vocab_size": 2, "pad_token_id": 0, ` + bertDefaults,
	model:    postNormModel, classifier: firstToken(layers.Tanh),
	config: func(k *keys, c *Config) {
		k.bert(c)
		k.segments(c)
		k.learned("max_position_embeddings", c, 0)
		k.maskHead(c, c.Model.Block.FeedForward.Activation)
	},
	names: append([]string{"segments embeddings.token_type_embeddings", "positions embeddings.position_embeddings"}, bertNames...),
	heads: joined(tokenHeads, map[string][]string{
		"mask": {"transform.linear cls.predictions.transform.dense", "transform.norm cls.predictions.transform.LayerNorm",
			"head.bias cls.predictions.decoder.bias|cls.predictions.bias", "head cls.predictions.decoder"},
		"classes": {"transform.linear bert.pooler.dense|pooler.dense", "head classifier"},
	}),
}

const bertDefaults = `"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
	"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "layer_norm_eps": 1e-12,
	"tie_word_embeddings": true}`

// postNormModel has the settings that bert shares with architectures that come from it.
var postNormModel = layers.ModelConfig{EmbeddingScale: 1, EmbeddingNorm: true, Block: layers.BlockConfig{PostNorm: true}}

// firstToken is the classifier of most encoders: the state of the first token, a hidden layer and a head.
func firstToken(a layers.Activation) layers.SequenceClassifierConfig {
	return layers.SequenceClassifierConfig{Pooling: layers.FirstPooling, Model: layers.ModelConfig{Transform: &layers.TransformConfig{Activation: a}}}
}

// bert copies the keys that bert shares with architectures that come from it, except positions.
func (k *keys) bert(c *Config) {
	m, a, f := c.parts()
	k.only("position_embedding_type", "absolute")
	k.copy("vocab_size", &m.Vocab, "hidden_size", &m.Dim, "num_hidden_layers", &m.Layers, "num_attention_heads", &a.Heads,
		"intermediate_size", &f.Hidden, "hidden_act", &f.Activation, "layer_norm_eps", &m.Block.Norm.Eps, "tie_word_embeddings", &m.Tied,
		"hidden_dropout_prob", &m.Block.Dropout, "hidden_dropout_prob", &m.Dropout, "attention_probs_dropout_prob", &a.Dropout)
}

// segments copies the number of token types. The reference library always adds the vector of one.
func (k *keys) segments(c *Config) {
	c.Model.Segments = max(c.Model.Segments, 1)
	k.copy("type_vocab_size", &c.Model.Segments)
}

// maskHead gives the model the head for masked tokens: a hidden layer with an activation and a norm, and a bias.
func (k *keys) maskHead(c *Config, a layers.Activation) {
	if m := &c.Model; !k.writing {
		m.Transform = &layers.TransformConfig{Activation: a, Norm: true}
		m.Outputs, m.TiedBias = m.Vocab, m.Tied
	}
}

var bertNames = []string{
	"embedding embeddings.word_embeddings", "embeddingnorm embeddings.LayerNorm",
	"blocks.{i}.attention.query encoder.layer.{i}.attention.self.query", "blocks.{i}.attention.key encoder.layer.{i}.attention.self.key",
	"blocks.{i}.attention.value encoder.layer.{i}.attention.self.value", "blocks.{i}.attention.output encoder.layer.{i}.attention.output.dense",
	"blocks.{i}.norm1 encoder.layer.{i}.attention.output.LayerNorm", "blocks.{i}.norm2 encoder.layer.{i}.output.LayerNorm",
	"blocks.{i}.feedforward.up encoder.layer.{i}.intermediate.dense", "blocks.{i}.feedforward.down encoder.layer.{i}.output.dense",
}
