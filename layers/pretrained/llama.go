package pretrained

import "github.com/heed-go/heed/layers"

// llama is the architecture of Llama 1 to 3.2, TinyLlama and SmolLM.
var llama = architecture{
	class: "LlamaForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
		"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000}`,
	model: gatedModel, classifier: lastToken, names: gatedNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.not("attention_bias", &c.Model.Block.Attention.NoBias)
		k.not("mlp_bias", &c.Model.Block.FeedForward.NoBias)
	},
}

// gatedModel has the settings that llama shares with architectures that come from it.
var gatedModel = layers.ModelConfig{
	NoBias: true, EmbeddingScale: 1,
	Block: layers.BlockConfig{
		Attention:   layers.AttentionConfig{NoBias: true},
		FeedForward: layers.FeedForwardConfig{NoBias: true, Gated: true},
		Norm:        layers.NormConfig{Kind: "rms"},
	},
}

// gated copies the keys that llama shares with architectures that come from it.
func (k *keys) gated(c *Config) {
	k.gatedSizes(c, "hidden_act")
	k.rotary(c, "rope_theta", "partial_rotary_factor")
}

// gatedSizes copies the same keys except those of positions. The argument act is the key of the activation.
func (k *keys) gatedSizes(c *Config, act string) {
	m := &c.Model
	a, f := &m.Block.Attention, &m.Block.FeedForward
	k.int("vocab_size", &m.Vocab)
	k.int("hidden_size", &m.Dim)
	k.layers("num_hidden_layers", m)
	k.int("num_attention_heads", &a.Heads)
	k.int("num_key_value_heads", &a.KeyValueHeads)
	k.int("head_dim", &a.HeadDim)
	k.int("intermediate_size", &f.Hidden)
	k.activation(act, &f.Activation)
	k.float("rms_norm_eps", &m.Block.Norm.Eps)
	k.float("attention_dropout", &a.Dropout)
	k.bool("tie_word_embeddings", &m.Tied)
	k.int("max_position_embeddings", &c.MaxLen)
}

// lastToken is the classifier of decoders: the state of the last token, and a head without a bias.
var lastToken = layers.SequenceClassifierConfig{Pooling: layers.LastPooling, Model: layers.ModelConfig{NoBias: true}}

// textHeads has the names of the heads of most decoders.
var textHeads = map[string][]name{"text": {{ours: "head", theirs: "lm_head"}}, "classes": {{ours: "head", theirs: "score"}}}

var gatedNames = []name{
	{ours: "embedding", theirs: "embed_tokens"},
	{ours: "blocks.{i}.attention.query", theirs: "layers.{i}.self_attn.q_proj"},
	{ours: "blocks.{i}.attention.key", theirs: "layers.{i}.self_attn.k_proj"},
	{ours: "blocks.{i}.attention.value", theirs: "layers.{i}.self_attn.v_proj"},
	{ours: "blocks.{i}.attention.output", theirs: "layers.{i}.self_attn.o_proj"},
	{ours: "blocks.{i}.attention.querynorm", theirs: "layers.{i}.self_attn.q_norm"},
	{ours: "blocks.{i}.attention.keynorm", theirs: "layers.{i}.self_attn.k_norm"},
	{ours: "blocks.{i}.feedforward.gate", theirs: "layers.{i}.mlp.gate_proj"},
	{ours: "blocks.{i}.feedforward.up", theirs: "layers.{i}.mlp.up_proj"},
	{ours: "blocks.{i}.feedforward.down", theirs: "layers.{i}.mlp.down_proj"},
	{ours: "blocks.{i}.norm1", theirs: "layers.{i}.input_layernorm"},
	{ours: "blocks.{i}.norm2", theirs: "layers.{i}.post_attention_layernorm"},
	{ours: "norm", theirs: "norm"},
}
