package pretrained

import (
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/layers"
)

// deberta is the architecture of DeBERTa. Its blocks have one matrix for queries, keys and values, and no bias of keys.
var deberta = architecture{
	class: "DebertaForMaskedLM", prefix: "deberta.", heads: debertaHeads,
	defaults: `{"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, ` + debertaDefaults,
	model:    changed(postNormModel, func(m *layers.ModelConfig) { m.Block.Attention.NoKeyBias = true }),
	config: func(k *keys, c *Config) {
		k.debertaModel(c)
		d := k.distances(c, true)
		k.debertaPositions(c, d)
	},
	names: append([]string{
		"blocks.{i}.attention.query.bias encoder.layer.{i}.attention.self.q_bias", "blocks.{i}.attention.value.bias encoder.layer.{i}.attention.self.v_bias",
		"blocks.{i}.attention.query+key+value encoder.layer.{i}.attention.self.in_proj heads",
		"blocks.{i}.attention.distancekeys encoder.layer.{i}.attention.self.pos_proj",
		"blocks.{i}.attention.distancequeries encoder.layer.{i}.attention.self.pos_q_proj",
	}, debertaNames...),
}

// debertaV2 is the architecture of DeBERTa-v2 and DeBERTa-v3. Distances have buckets, and W_q and W_k may project their
// vectors.
var debertaV2 = architecture{
	class: "DebertaV2ForMaskedLM", prefix: "deberta.", heads: debertaHeads,
	defaults: `{"vocab_size": 128100, "hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24, "intermediate_size": 6144, ` + debertaDefaults,
	model:    postNormModel,
	config: func(k *keys, c *Config) {
		k.debertaModel(c)
		m := &c.Model
		a := &m.Block.Attention
		if m.Dim%max(a.Heads, 1) == 0 { // otherwise, making the model is an error
			k.only("attention_head_size", m.Dim/max(a.Heads, 1))
		}
		shared, norm, buckets := k.writing && !a.DistanceKeys && !a.DistanceQueries, "none", 0
		if d := distancesOf(*m); k.writing && d != nil {
			if buckets = d.Buckets; d.Norm != nil {
				norm = "layer_norm"
			}
		}
		k.copy("position_buckets", (*signed)(&buckets), "norm_rel_ebd", &norm, "share_att_key", &shared)
		d := k.distances(c, !shared)
		if d != nil && !k.writing {
			d.Buckets = max(buckets, 0)
			if d.Buckets%2 != 0 || d.Buckets > 0 && d.MaxDistance < d.Buckets/2+2 {
				k.fail(unsupported("position_buckets", buckets, "an even number, whose half is below max_relative_positions"))
			}
			for kind := range strings.SplitSeq(strings.ToLower(norm), "|") {
				if strings.TrimSpace(kind) == "layer_norm" {
					d.Norm = &layers.NormConfig{Eps: m.Block.Norm.Eps}
				}
			}
		}
		k.debertaPositions(c, d)
	},
	names: append([]string{
		"positions.norm encoder.LayerNorm", "positions.1.norm encoder.LayerNorm",
		"blocks.{i}.attention.query encoder.layer.{i}.attention.self.query_proj", "blocks.{i}.attention.key encoder.layer.{i}.attention.self.key_proj",
		"blocks.{i}.attention.value encoder.layer.{i}.attention.self.value_proj",
		"blocks.{i}.attention.distancekeys encoder.layer.{i}.attention.self.pos_key_proj",
		"blocks.{i}.attention.distancequeries encoder.layer.{i}.attention.self.pos_query_proj",
	}, debertaNames...),
}

const debertaDefaults = `"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512,
	"type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": false, "max_relative_positions": -1, "pad_token_id": 0,
	"position_biased_input": true, "pooler_hidden_act": "gelu", "legacy": true, "tie_word_embeddings": true}`

var debertaNames = append([]string{
	"segments embeddings.token_type_embeddings", "positions.0 embeddings.position_embeddings", "positions encoder.rel_embeddings",
	"positions.1 encoder.rel_embeddings", "projection embeddings.embed_proj",
}, bertNames...)

// debertaHeads has the names of both heads for masked tokens: they compute the same.
var debertaHeads = joined(tokenHeads, map[string][]string{
	"mask": {
		"transform.linear cls.predictions.transform.dense|lm_predictions.lm_head.dense", "transform.norm cls.predictions.transform.LayerNorm|lm_predictions.lm_head.LayerNorm",
		"head.bias cls.predictions.decoder.bias|cls.predictions.bias|lm_predictions.lm_head.bias", "head cls.predictions.decoder",
	},
	"classes": {"transform.linear pooler.dense", "head classifier"},
})

// debertaModel copies the keys that both architectures share, except positions. The classifier reads the first token.
func (k *keys) debertaModel(c *Config) {
	k.bert(c)
	k.narrow(c, false, layers.ProjectionConfig{NoBias: true, NormAfter: true})
	m, legacy, pooler := &c.Model, true, layers.GELU
	if k.writing && c.Head == "classes" && m.Transform != nil {
		pooler = m.Transform.Activation
	}
	k.copy("type_vocab_size", &m.Segments, "legacy", &legacy, "pooler_hidden_act", &pooler)
	k.only("pooler_hidden_size", m.Dim)
	if k.writing {
		return
	}
	m.Tied = m.Tied || !legacy
	k.maskHead(c, m.Block.FeedForward.Activation)
	classifier := firstToken(pooler)
	c.Classifier = &classifier
}

// distances copies the settings of the vectors of distances, and returns nil if the model has none. The argument own
// says whether each block has projections of its own for them.
func (k *keys) distances(c *Config, own bool) *layers.Disentangled {
	m, a := &c.Model, &c.Model.Block.Attention
	d := distancesOf(*m)
	relative, far := d != nil, -1
	if d != nil {
		far = d.MaxDistance
	}
	c.MaxLen = max(c.MaxLen, learnedLen(*m))
	k.copy("relative_attention", &relative, "max_relative_positions", (*signed)(&far), "max_position_embeddings", &c.MaxLen)
	if k.writing {
		kinds := []string{}
		head, _ := a.HeadWidth(m.Dim)
		products := int(math.Round(1 / (a.Scale * a.Scale * float64(head)))) // also counts kinds without distances
		if d == nil && products > 1 || d != nil && !d.NoKeys {
			kinds = append(kinds, "c2p")
		}
		if d == nil && products > 2 || d != nil && !d.NoQueries {
			kinds = append(kinds, "p2c")
		}
		k.copy("pos_att_type", &kinds)
		return d
	}
	kinds := k.kinds("pos_att_type")
	head, _ := a.HeadWidth(max(m.Dim, 1))
	a.Scale = 1 / math.Sqrt(float64(max(head, 1)*(1+len(kinds))))
	if !relative {
		return nil
	}
	if len(kinds) == 0 {
		k.fail(unsupported("pos_att_type", k.values["pos_att_type"], "c2p, p2c or both with relative_attention"))
	}
	if far < 1 {
		far = c.MaxLen
	}
	keys, queries := slices.Contains(kinds, "c2p"), slices.Contains(kinds, "p2c")
	a.DistanceKeys, a.DistanceQueries = own && keys, own && queries
	return &layers.Disentangled{MaxDistance: far, NoKeys: !keys, NoQueries: !queries, Dropout: m.Block.Dropout}
}

// kinds copies a list of c2p and p2c, or a string of them with bars between them.
func (k *keys) kinds(name string) (kinds []string) {
	if text, ok := k.values[name].(string); ok {
		k.know(name, true)
		for kind := range strings.SplitSeq(strings.ToLower(text), "|") {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	} else {
		k.copy(name, &kinds)
	}
	sorted := slices.Sorted(slices.Values(kinds))
	if len(slices.Compact(sorted)) < len(kinds) || slices.ContainsFunc(kinds, func(kind string) bool { return kind != "c2p" && kind != "p2c" }) {
		k.fail(unsupported(name, k.values[name], "c2p, p2c or both, each once"))
	}
	return kinds
}

// debertaPositions copies whether tokens have a learned vector for their position, besides the vectors of distances.
func (k *keys) debertaPositions(c *Config, d *layers.Disentangled) {
	m := &c.Model
	biased := !k.writing || learnedLen(*m) > 0
	if k.copy("position_biased_input", &biased); k.writing {
		return
	}
	switch learned := (layers.Learned{MaxLen: c.MaxLen}); {
	case biased && d != nil:
		m.Positions = layers.PositionsList{Schemes: []layers.PositionsConfig{learned, *d}}
	case biased:
		m.Positions = layers.PositionsList{Schemes: []layers.PositionsConfig{learned}}
	case d != nil:
		m.Positions = *d
	default:
		m.Positions = layers.NoPositions{}
	}
}

// distancesOf returns the vectors of distances that a model has, or nil.
func distancesOf(m layers.ModelConfig) *layers.Disentangled {
	schemes := []layers.PositionsConfig{m.Positions}
	if list, ok := m.Positions.(layers.PositionsList); ok {
		schemes = list.Schemes
	}
	for _, scheme := range schemes {
		if d, ok := scheme.(layers.Disentangled); ok {
			return &d
		}
	}
	return nil
}
