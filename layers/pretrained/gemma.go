package pretrained

import (
	"cmp"
	"math"

	"github.com/heed-go/heed/layers"
)

// gemma2 is the architecture of Gemma 2. Sub-layers have a norm before and after them, and a norm's weight is 1 plus
// the file's. Every second block has a window.
var gemma2 = architecture{
	class: "Gemma2ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 256000, "max_position_embeddings": 8192, "final_logit_softcapping": 30, "attn_logit_softcapping": 50, ` + gemmaDefaults,
	model:    gemmaModel, classifier: lastToken, names: gemmaNames, heads: joined(textHeads, scoreTags),
	config: func(k *keys, c *Config) {
		window := k.gemma(c)
		k.copy("attn_logit_softcapping", (*none)(&c.Model.Block.Attention.Softcap))
		k.rotary(c, "rope_theta", "partial_rotary_factor")
		k.layerTypes(&c.Model, window, nil, func(i int) bool { return i%2 == 0 })
	},
}

// gemma3 is the architecture of the text models of Gemma 3. Queries and keys are normalised. Five of six blocks have a
// window and rotary positions of their own. The parameters of the positions are nested in rope_parameters, or
// rope_theta and rope_scaling are for blocks without a window.
var gemma3 = architecture{
	class: "Gemma3ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 262208, "max_position_embeddings": 131072, "rope_theta": 1000000, "sliding_window_pattern": 6, ` + gemmaDefaults,
	model:    gemmaModel, classifier: lastToken, names: gemmaNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		m, window, pattern := &c.Model, k.gemma(c), 6
		k.queryKeyNorm(c)
		k.copy("sliding_window_pattern", &pattern)
		if both := false; !k.writing {
			if k.copy("use_bidirectional_attention", &both); both {
				reach := (window.Left + 1) / 2
				c.Causal, window = false, &layers.Window{Left: reach, Right: reach}
			}
		}
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
		k.layerTypes(m, window, local, func(i int) bool { return pattern < 1 || (i+1)%pattern != 0 })
	},
}

const gemmaDefaults = `"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
	"head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256, "sliding_window": 4096,
	"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "tie_word_embeddings": true}`

var gemmaModel = changed(gatedModel, func(m *layers.ModelConfig) { m.Block.OutputNorm = true })

// gemma copies the keys that Gemma 2 and 3 share, except positions, and returns the window.
func (k *keys) gemma(c *Config) *layers.Window {
	m, scalar := &c.Model, 0
	window := cmp.Or(slidingWindow(*m), &layers.Window{Left: 4095}) // the reference library needs one, even if no block has it
	a := &m.Block.Attention
	k.gatedSizes(c, "hidden_activation")
	if k.writing {
		scalar = int(math.Round(1 / (a.Scale * a.Scale)))
	}
	k.copy("attention_bias", (*not)(&a.NoBias), "final_logit_softcapping", (*none)(&m.LogitSoftcap), "query_pre_attn_scalar", &scalar, "sliding_window", &window)
	if !k.writing {
		a.Scale, m.EmbeddingScale = 1/math.Sqrt(float64(scalar)), math.Sqrt(float64(m.Dim))
	}
	return window
}

var gemmaNames = append([]string{
	"norm norm plus1", "blocks.{i}.attention.querynorm layers.{i}.self_attn.q_norm plus1", "blocks.{i}.attention.keynorm layers.{i}.self_attn.k_norm plus1",
	"blocks.{i}.norm1 layers.{i}.input_layernorm plus1", "blocks.{i}.norm1out layers.{i}.post_attention_layernorm plus1",
	"blocks.{i}.norm2 layers.{i}.pre_feedforward_layernorm plus1", "blocks.{i}.norm2out layers.{i}.post_feedforward_layernorm plus1",
}, gatedNames...)
