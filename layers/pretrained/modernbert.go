package pretrained

import (
	"slices"

	"github.com/heed-go/heed/layers"
)

// modernbert is the architecture of ModernBERT. Two of three blocks have a window, on both sides, and rotary positions
// of their own. The first block has no norm before its attention.
var modernbert = architecture{
	class: "ModernBertForMaskedLM", prefix: "model.",
	defaults: `{"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22, "num_attention_heads": 12,
		"hidden_activation": "gelu", "max_position_embeddings": 8192, "norm_eps": 1e-5, "norm_bias": false, "pad_token_id": 50283,
		"eos_token_id": 50282, "bos_token_id": 50281, "global_rope_theta": 160000, "local_rope_theta": 10000, "attention_bias": false,
		"mlp_bias": false, "decoder_bias": true, "classifier_bias": false, "classifier_activation": "gelu", "tie_word_embeddings": true}`,
	model: layers.ModelConfig{EmbeddingScale: 1, EmbeddingNorm: true, Block: layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Gated: true}}},
	config: func(k *keys, c *Config) {
		m, every, width, pooling := &c.Model, 3, 128, "cls"
		a, f := &m.Block.Attention, &m.Block.FeedForward
		transform := layers.TransformConfig{Norm: true}
		var local layers.PositionsConfig
		if k.writing {
			m.Variants = slices.DeleteFunc(slices.Clone(m.Variants), func(v layers.BlockVariant) bool { return v.NoNorm1 && v.Window == nil })
			if w := slidingWindow(*m); w != nil {
				width = 2 * w.Left
			}
			if len(m.Variants) > 0 {
				local = m.Variants[0].Positions
			}
			if m.Transform != nil {
				transform = *m.Transform
			}
			if c.Classifier != nil && c.Classifier.Pooling == layers.MeanPooling {
				pooling = "mean"
			}
		}
		k.copy("vocab_size", &m.Vocab, "hidden_size", &m.Dim, "num_hidden_layers", &m.Layers, "num_attention_heads", &a.Heads, "intermediate_size", &f.Hidden,
			"hidden_activation", &f.Activation, "norm_eps", &m.Block.Norm.Eps, "norm_bias", (*not)(&m.Block.Norm.NoBias), "max_position_embeddings", &c.MaxLen,
			"attention_bias", (*not)(&a.NoBias), "mlp_bias", (*not)(&f.NoBias), "classifier_bias", (*not)(&transform.NoBias),
			"classifier_activation", &transform.Activation, "classifier_pooling", &pooling, "local_attention", &width, "global_attn_every_n_layers", &every,
			"embedding_dropout", &m.Dropout, "mlp_dropout", &f.Dropout, "attention_dropout", &a.Dropout, "tie_word_embeddings", &m.Tied)
		nested := k.object("rope_parameters")
		outer, inner := nested.object(fullAttention), nested.object(slidingAttention)
		m.Positions = k.rotation(c, m.Positions, outer, "global_rope_theta", "partial_rotary_factor")
		local = k.rotation(c, local, inner, "local_rope_theta", "partial_rotary_factor")
		k.fail(outer.err)
		k.fail(inner.err)
		k.layerTypes(m, &layers.Window{Left: width / 2, Right: width / 2}, local, func(i int) bool { return every < 1 || i%every != 0 })
		bias := !k.writing || m.TiedBias || !m.Tied && !m.NoBias
		if k.copy("decoder_bias", &bias); k.writing {
			return
		}
		m.Outputs, m.TiedBias, m.NoBias, m.Transform = m.Vocab, m.Tied && bias, !bias, &transform
		c.Classifier = &layers.SequenceClassifierConfig{Pooling: layers.FirstPooling, Model: layers.ModelConfig{Transform: &transform}}
		switch pooling {
		case "mean":
			c.Classifier.Pooling = layers.MeanPooling
		case "cls":
		default:
			k.fail(unsupported("classifier_pooling", pooling, "cls or mean"))
		}
		first := layers.BlockVariant{Blocks: []int{0}, NoNorm1: true}
		for i, v := range m.Variants { // then all blocks of the variant are alike, and the first becomes another variant
			if j := slices.Index(v.Blocks, 0); j >= 0 {
				first.Window, first.Positions = v.Window, v.Positions
				m.Variants[i].Blocks = slices.Delete(v.Blocks, j, j+1)
			}
		}
		m.Variants = append(slices.DeleteFunc(m.Variants, func(v layers.BlockVariant) bool { return len(v.Blocks) == 0 }), first)
	},
	names: []string{
		"embedding embeddings.tok_embeddings", "embeddingnorm embeddings.norm", "norm final_norm",
		"blocks.{i}.norm1 layers.{i}.attn_norm", "blocks.{i}.norm2 layers.{i}.mlp_norm",
		"blocks.{i}.attention.query+key+value layers.{i}.attn.Wqkv", "blocks.{i}.attention.output layers.{i}.attn.Wo",
		"blocks.{i}.feedforward.gate+up layers.{i}.mlp.Wi", "blocks.{i}.feedforward.down layers.{i}.mlp.Wo",
	},
	heads: map[string][]string{
		"mask":    {"transform.linear head.dense", "transform.norm head.norm", "head decoder"},
		"classes": modernbertHead, "tags": modernbertHead, "spans": modernbertHead,
	},
}

var modernbertHead = []string{"transform.linear head.dense", "transform.norm head.norm", "head classifier"}
