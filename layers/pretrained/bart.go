package pretrained

import (
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/layers"
)

// bart is the architecture of BART: post-norm blocks, and learned positions whose tables begin with two rows that no
// token has.
var bart = architecture{
	class: "BartForConditionalGeneration", prefix: "model.", aliases: bartAliases,
	defaults: `{"vocab_size": 50265, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2, "num_labels": 3, ` + bartDefaults,
	model:    layers.ModelConfig{Tied: true, TiedBias: true, EmbeddingNorm: true, Block: layers.BlockConfig{PostNorm: true}},
	config:   func(k *keys, c *Config) { k.bart(c); k.learned("max_position_embeddings", c, 0) },
	names:    bartNames(true), heads: joined(bartHeads, map[string][]string{"classes": {"transform.linear classification_head.dense", "head classification_head.out_proj"}}),
	classifier: layers.SequenceClassifierConfig{Pooling: layers.LastPooling, Model: layers.ModelConfig{Transform: &layers.TransformConfig{Activation: layers.Tanh}}},
}

// mbart is the architecture of mBART and mBART-50: BART with pre-norm blocks.
var mbart = architecture{
	class: "MBartForConditionalGeneration", prefix: "model.", aliases: bartAliases,
	defaults: `{"vocab_size": 50265, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": 2, ` + bartDefaults,
	model:    layers.ModelConfig{Tied: true, TiedBias: true, EmbeddingNorm: true},
	config:   func(k *keys, c *Config) { k.bart(c); k.learned("max_position_embeddings", c, 0) },
	names:    bartNames(true), heads: bartHeads,
}

// marian is the architecture of Marian's translators: BART with sinusoidal positions. Source and target may have tables
// of their own.
var marian = architecture{
	class: "MarianMTModel", prefix: "model.", aliases: bartAliases,
	defaults: `{"vocab_size": 58101, "pad_token_id": 58100, "eos_token_id": 0, "decoder_start_token_id": 58100, "forced_eos_token_id": 0,
		"share_encoder_decoder_embeddings": true, ` + bartDefaults,
	model: layers.ModelConfig{Tied: true, TiedBias: true, Positions: layers.Sinusoidal{Halves: true}, Block: layers.BlockConfig{PostNorm: true}},
	config: func(k *keys, c *Config) {
		k.bart(c)
		k.copy("max_position_embeddings", &c.MaxLen)
		s := c.Sequence
		if k.copy("share_encoder_decoder_embeddings", &s.Shared, "decoder_vocab_size", (*zero)(&s.TargetVocab)); s.Shared && !k.writing {
			s.TargetVocab = 0
		}
	},
	names: bartNames(false), heads: bartHeads,
}

// pegasus is the architecture of Pegasus: Marian with pre-norm blocks.
var pegasus = architecture{
	class: "PegasusForConditionalGeneration", prefix: "model.", aliases: bartAliases,
	defaults: `{"vocab_size": 50265, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "forced_eos_token_id": 1, ` + bartDefaults,
	model:    layers.ModelConfig{Tied: true, TiedBias: true, Positions: layers.Sinusoidal{Halves: true}},
	config:   func(k *keys, c *Config) { k.bart(c); k.copy("max_position_embeddings", &c.MaxLen) },
	names:    bartNames(false), heads: bartHeads,
}

const bartDefaults = `"d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
	"encoder_attention_heads": 16, "decoder_attention_heads": 16, "activation_function": "gelu", "dropout": 0.1, "scale_embedding": false,
	"max_position_embeddings": 1024}`

var bartAliases = map[string]string{"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads", "num_hidden_layers": "encoder_layers"}

// bart copies the keys that bart shares with architectures that come from it, except positions.
func (k *keys) bart(c *Config) {
	m, a, f := c.parts()
	s, scaled := k.sequence(c), m.EmbeddingScale != 1
	k.copy("vocab_size", &m.Vocab, "d_model", &m.Dim, "encoder_layers", &m.Layers, "decoder_layers", &s.DecoderLayers,
		"encoder_attention_heads", &a.Heads, "encoder_ffn_dim", &f.Hidden, "activation_function", &f.Activation, "scale_embedding", &scaled,
		"dropout", &m.Block.Dropout, "dropout", &m.Dropout, "attention_dropout", &a.Dropout, "activation_dropout", &f.Dropout)
	k.only("decoder_attention_heads", a.Heads, "decoder_ffn_dim", f.Hidden, "tie_word_embeddings", true, "is_encoder_decoder", true)
	if !k.writing {
		m.EmbeddingScale = 1
		if scaled {
			m.EmbeddingScale = math.Sqrt(float64(m.Dim))
		}
	}
}

// bartNames returns the names of bart's tensors, with or without tables of positions.
func bartNames(positions bool) []string {
	names := slices.Concat([]string{"embedding shared|encoder.embed_tokens|decoder.embed_tokens"}, bothHalves(
		"embedding embed_tokens", "embeddingnorm layernorm_embedding", "norm layer_norm",
		"blocks.{i}.norm1 layers.{i}.self_attn_layer_norm", "blocks.{i}.norm2 layers.{i}.final_layer_norm",
		"blocks.{i}.attention.query layers.{i}.self_attn.q_proj", "blocks.{i}.attention.key layers.{i}.self_attn.k_proj",
		"blocks.{i}.attention.value layers.{i}.self_attn.v_proj", "blocks.{i}.attention.output layers.{i}.self_attn.out_proj",
		"blocks.{i}.normcross layers.{i}.encoder_attn_layer_norm",
		"blocks.{i}.cross.query layers.{i}.encoder_attn.q_proj", "blocks.{i}.cross.key layers.{i}.encoder_attn.k_proj",
		"blocks.{i}.cross.value layers.{i}.encoder_attn.v_proj", "blocks.{i}.cross.output layers.{i}.encoder_attn.out_proj",
		"blocks.{i}.feedforward.up layers.{i}.fc1", "blocks.{i}.feedforward.down layers.{i}.fc2"))
	if positions {
		names = append(names, bothHalves("positions embed_positions skip2")...)
	}
	return names
}

// bothHalves returns the names of the tensors of an encoder and of a decoder.
func bothHalves(lines ...string) (names []string) {
	for _, half := range []string{"encoder.", "decoder."} {
		for _, line := range lines {
			ours, theirs, _ := strings.Cut(line, " ")
			names = append(names, half+ours+" "+half+theirs)
		}
	}
	return names
}

var bartHeads = map[string][]string{"sequence": {"decoder.head.bias final_logits_bias row", "decoder.head lm_head"}}
