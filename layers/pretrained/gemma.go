package pretrained

import (
	"math"
	"slices"

	"github.com/heed-go/heed/layers"
)

// gemma2 is the architecture of Gemma 2. Sub-layers have a norm before and after them, and a norm's weight is 1 plus
// the file's. Every second block has a window.
var gemma2 = architecture{
	class: "Gemma2ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
		"num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192, "sliding_window": 4096, "rope_theta": 10000,
		"final_logit_softcapping": 30, "attn_logit_softcapping": 50, ` + gemmaDefaults,
	model: gemmaModel, classifier: lastToken, names: gemmaNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		k.gemma(c)
		k.optional("attn_logit_softcapping", &c.Model.Block.Attention.Softcap)
		k.rotary(c, "rope_theta", "partial_rotary_factor")
		window := slidingWindow(c.Model)
		k.window("sliding_window", &window)
		k.layerTypes(c, window, nil, func(i int) bool { return i%2 == 0 })
	},
}

// gemma3 is the architecture of the text models of Gemma 3. Queries and keys are normalised. Five of six blocks have a
// window and their own rotary positions.
var gemma3 = architecture{
	class: "Gemma3ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
		"num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 4096,
		"rope_theta": 1000000, "rope_local_base_freq": 10000, ` + gemmaDefaults,
	model: gemmaModel, classifier: lastToken, names: gemmaNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		k.gemma(c)
		k.queryKeyNorm(c)
		k.gemma3Positions(c)
	},
}

const gemmaDefaults = `"hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256,
	"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "tie_word_embeddings": true}`

var gemmaModel = func() layers.ModelConfig {
	m := gatedModel
	m.Block.OutputNorm = true
	return m
}()

// gemma copies the keys that Gemma 2 and 3 share, except positions and windows.
func (k *keys) gemma(c *Config) {
	m := &c.Model
	a := &m.Block.Attention
	k.only("use_bidirectional_attention", false)
	k.gatedSizes(c, "hidden_activation")
	k.not("attention_bias", &a.NoBias)
	k.optional("final_logit_softcapping", &m.LogitSoftcap)
	scalar := 0
	if k.writing {
		scalar = int(math.Round(1 / (a.Scale * a.Scale)))
	}
	if k.int("query_pre_attn_scalar", &scalar); !k.writing {
		a.Scale, m.EmbeddingScale = 1/math.Sqrt(float64(scalar)), math.Sqrt(float64(m.Dim))
	}
}

// gemma3Positions copies which blocks have a window, and the rotary positions of blocks with and without one. They are
// nested in rope_parameters, or rope_theta and rope_scaling are for blocks without a window.
func (k *keys) gemma3Positions(c *Config) {
	m, window, pattern := &c.Model, slidingWindow(c.Model), 6
	k.window("sliding_window", &window)
	k.int("sliding_window_pattern", &pattern)
	var local layers.PositionsConfig
	if len(m.Variants) > 0 {
		local = m.Variants[0].Positions
	}
	nested := k.object("rope_parameters")
	outer, inner := nested.object(fullAttention), nested.object(slidingAttention)
	if len(outer.values) == 0 {
		outer = k.object("rope_scaling")
	}
	m.Positions = k.rotation(c, m.Positions, outer, "rope_theta", "partial_rotary_factor")
	local = k.rotation(c, local, inner, "rope_local_base_freq", "partial_rotary_factor")
	k.put("rope_scaling", outer)
	k.fail(inner.err)
	k.layerTypes(c, window, local, func(i int) bool { return pattern < 1 || (i+1)%pattern != 0 })
}

var gemmaNames = func() []name {
	names := slices.Clone(gatedNames)
	for i, n := range names {
		switch n.ours {
		case "blocks.{i}.norm2":
			names[i].theirs = "layers.{i}.pre_feedforward_layernorm"
			fallthrough
		case "blocks.{i}.norm1", "norm", "blocks.{i}.attention.querynorm", "blocks.{i}.attention.keynorm":
			names[i].how.Plus = 1
		}
	}
	return append(names,
		name{ours: "blocks.{i}.norm1out", theirs: "layers.{i}.post_attention_layernorm", how: layers.Tensor{Plus: 1}},
		name{ours: "blocks.{i}.norm2out", theirs: "layers.{i}.post_feedforward_layernorm", how: layers.Tensor{Plus: 1}})
}()
