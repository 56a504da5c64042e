package pretrained

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/layers"
)

// t5 is the architecture of T5, T5 1.1 and Flan-T5. Its positions are a bias for each distance: all blocks of the
// encoder share one table of them, and all blocks of the decoder another.
var t5 = architecture{
	class: "T5ForConditionalGeneration", aliases: t5Aliases, encoder: true,
	defaults: `{"vocab_size": 32128, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "feed_forward_proj": "relu", ` + t5Defaults,
	model:    t5Model, names: t5Names, heads: t5Heads, config: (*keys).scaledT5,
}

// mt5 is the architecture of mT5: T5 1.1 with other sizes.
var mt5 = architecture{
	class: "MT5ForConditionalGeneration", aliases: t5Aliases, encoder: true,
	defaults: mt5Defaults,
	model:    t5Model, names: t5Names, heads: t5Heads,
	config: func(k *keys, c *Config) { k.t5(c); k.copy("tie_word_embeddings", &c.Model.Tied) },
}

// umt5 is the architecture of umT5: mT5 whose blocks have tables of distances of their own.
var umt5 = architecture{
	class: "UMT5ForConditionalGeneration", aliases: t5Aliases, encoder: true,
	defaults: mt5Defaults,
	model:    layers.ModelConfig{NoBias: true, EmbeddingScale: 1, Positions: layers.RelativeBias{PerBlock: true}, Block: t5Model.Block},
	names:    t5Names, heads: t5Heads, config: (*keys).scaledT5,
}

const mt5Defaults = `{"vocab_size": 250112, "d_ff": 1024, "num_layers": 8, "num_heads": 6, "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0, ` + t5Defaults

const t5Defaults = `"d_model": 512, "d_kv": 64, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "dropout_rate": 0.1,
	"layer_norm_epsilon": 1e-6, "pad_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": true}`

var t5Aliases = map[string]string{"hidden_size": "d_model", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers", "head_dim": "d_kv"}

var t5Model = layers.ModelConfig{NoBias: true, EmbeddingScale: 1, Positions: layers.RelativeBias{}, Block: layers.BlockConfig{
	Attention: layers.AttentionConfig{Scale: 1, NoBias: true}, FeedForward: layers.FeedForwardConfig{NoBias: true}, Norm: layers.NormConfig{Kind: "rms"}}}

const noLimit = 1 << 24 // a Config.MaxLen

// scaledT5 copies the keys of architectures whose decoder may scale its outputs.
func (k *keys) scaledT5(c *Config) {
	k.t5(c)
	m := &c.Model
	scaled := m.HeadScale != 0 && m.HeadScale != 1
	k.copy("tie_word_embeddings", &m.Tied)
	if !k.writing {
		scaled = m.Tied
	}
	if k.copy("scale_decoder_outputs", &scaled); scaled && !k.writing {
		m.HeadScale = 1 / math.Sqrt(float64(m.Dim))
	}
}

// t5 copies the keys that T5, mT5 and umT5 share.
func (k *keys) t5(c *Config) {
	m, a, f := c.parts()
	s := k.sequence(c)
	b, _ := m.Positions.(layers.RelativeBias)
	k.copy("vocab_size", &m.Vocab, "d_model", &m.Dim, "num_layers", &m.Layers, "num_decoder_layers", (*zero)(&s.DecoderLayers), "num_heads", &a.Heads,
		"d_kv", &a.HeadDim, "d_ff", &f.Hidden, "layer_norm_epsilon", &m.Block.Norm.Eps,
		"relative_attention_num_buckets", &b.Buckets, "relative_attention_max_distance", &b.MaxDistance,
		"dropout_rate", &m.Block.Dropout, "dropout_rate", &m.Dropout, "dropout_rate", &a.Dropout, "dropout_rate", &f.Dropout)
	if b.Buckets < 4 || b.Buckets%2 != 0 {
		k.invalid("relative_attention_num_buckets", "an even number from 4")
	}
	if b.MaxDistance <= b.Buckets/2 {
		k.invalid("relative_attention_max_distance", fmt.Sprintf("above half of relative_attention_num_buckets (%d)", b.Buckets))
	}
	c.MaxLen = noLimit
	if k.get("is_encoder_decoder"); k.writing {
		k.values["is_encoder_decoder"] = c.Head == "sequence"
		activation := activations[slices.IndexFunc(activations, func(e choices.Entry[layers.Activation]) bool { return e.Value == f.Activation })].Name
		if f.Gated {
			activation = "gated-" + activation
		}
		k.values["feed_forward_proj"] = activation
		return
	}
	m.Positions = b
	projection := ""
	k.copy("feed_forward_proj", &projection)
	name, gated := strings.CutPrefix(projection, "gated-")
	if f.Gated = gated; projection == "gated-gelu" {
		name = "gelu_new"
	}
	activation, ok := activations.Get(name)
	if f.Activation = activation; !ok {
		k.fail(unsupported("feed_forward_proj", projection, "gated- and an activation, or only an activation, which is one of "+activations.String()))
	}
	k.copy("dense_act_fn", &f.Activation, "is_gated_act", &f.Gated)
}

var t5Names = slices.Concat([]string{"embedding shared|encoder.embed_tokens|decoder.embed_tokens"},
	bothHalves("norm final_layer_norm", "positions block.0.layer.0.SelfAttention.relative_attention_bias",
		"blocks.{i}.positions block.{i}.layer.0.SelfAttention.relative_attention_bias", "blocks.{i}.norm1 block.{i}.layer.0.layer_norm",
		"blocks.{i}.attention.query block.{i}.layer.0.SelfAttention.q", "blocks.{i}.attention.key block.{i}.layer.0.SelfAttention.k",
		"blocks.{i}.attention.value block.{i}.layer.0.SelfAttention.v", "blocks.{i}.attention.output block.{i}.layer.0.SelfAttention.o"),
	t5FeedForward("encoder.", "layer.1."), t5FeedForward("decoder.", "layer.2."),
	[]string{"decoder.blocks.{i}.normcross decoder.block.{i}.layer.1.layer_norm",
		"decoder.blocks.{i}.cross.query decoder.block.{i}.layer.1.EncDecAttention.q", "decoder.blocks.{i}.cross.key decoder.block.{i}.layer.1.EncDecAttention.k",
		"decoder.blocks.{i}.cross.value decoder.block.{i}.layer.1.EncDecAttention.v", "decoder.blocks.{i}.cross.output decoder.block.{i}.layer.1.EncDecAttention.o"})

// t5FeedForward returns the names of the feed-forward layers of a half. Without gates, wi stands for wi_1: see tensors.
func t5FeedForward(half, layer string) []string {
	theirs := " " + half + "block.{i}." + layer
	block := half + "blocks.{i}."
	return []string{block + "norm2" + theirs + "layer_norm", block + "feedforward.gate" + theirs + "DenseReluDense.wi_0",
		block + "feedforward.up" + theirs + "DenseReluDense.wi_1", block + "feedforward.down" + theirs + "DenseReluDense.wo"}
}

var t5Heads = map[string][]string{"sequence": {"decoder.head lm_head"}}
