package pretrained

import "github.com/heed-go/heed/layers"

// llama is the architecture of Llama 1 to 3.2, TinyLlama and SmolLM.
var llama = architecture{
	class: "LlamaForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
		"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "bos_token_id": 1, "eos_token_id": 2}`,
	model: gatedModel, classifier: lastToken, names: gatedNames, heads: joined(textHeads, scoreTags, oldSpans),
	config: func(k *keys, c *Config) {
		k.gated(c)
		b := &c.Model.Block
		k.copy("attention_bias", (*not)(&b.Attention.NoBias), "mlp_bias", (*not)(&b.FeedForward.NoBias))
	},
}

// gatedModel has the settings that llama shares with architectures that come from it.
var gatedModel = layers.ModelConfig{NoBias: true, EmbeddingScale: 1, Block: layers.BlockConfig{
	Attention:   layers.AttentionConfig{NoBias: true},
	FeedForward: layers.FeedForwardConfig{NoBias: true, Gated: true},
	Norm:        layers.NormConfig{Kind: "rms"},
}}

// gated copies the keys that llama shares with architectures that come from it.
func (k *keys) gated(c *Config) {
	k.gatedSizes(c, "hidden_act")
	k.rotary(c, "rope_theta", "partial_rotary_factor")
}

// gatedSizes copies the same keys except those of positions. The argument act is the key of the activation.
func (k *keys) gatedSizes(c *Config, act string) {
	m, a, f := c.parts()
	k.copy("vocab_size", &m.Vocab, "hidden_size", &m.Dim, "num_hidden_layers", &m.Layers, "max_position_embeddings", &c.MaxLen,
		"num_attention_heads", &a.Heads, "num_key_value_heads", &a.KeyValueHeads, "head_dim", &a.HeadDim, "attention_dropout", &a.Dropout,
		"intermediate_size", &f.Hidden, act, &f.Activation, "rms_norm_eps", &m.Block.Norm.Eps, "tie_word_embeddings", &m.Tied)
}

// lastToken is the classifier of decoders: the state of the last token, and a head without a bias.
var lastToken = layers.SequenceClassifierConfig{Pooling: layers.LastPooling, Model: layers.ModelConfig{NoBias: true}}

var gatedNames = []string{
	"embedding embed_tokens", "norm norm",
	"blocks.{i}.norm1 layers.{i}.input_layernorm", "blocks.{i}.norm2 layers.{i}.post_attention_layernorm",
	"blocks.{i}.attention.query layers.{i}.self_attn.q_proj", "blocks.{i}.attention.querynorm layers.{i}.self_attn.q_norm",
	"blocks.{i}.attention.key layers.{i}.self_attn.k_proj", "blocks.{i}.attention.keynorm layers.{i}.self_attn.k_norm",
	"blocks.{i}.attention.value layers.{i}.self_attn.v_proj", "blocks.{i}.attention.output layers.{i}.self_attn.o_proj",
	"blocks.{i}.feedforward.gate layers.{i}.mlp.gate_proj", "blocks.{i}.feedforward.up layers.{i}.mlp.up_proj",
	"blocks.{i}.feedforward.down layers.{i}.mlp.down_proj",
}
