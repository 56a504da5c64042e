package pretrained

import (
	"cmp"

	"github.com/heed-go/heed/layers"
)

// cohere2 is the architecture of Command R7B and Command A. Both sub-layers of a block have one input and one norm.
// Three of four blocks have a window and rotary positions, and the others no positions.
var cohere2 = architecture{
	class: "Cohere2ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64,
		"hidden_act": "silu", "max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "logit_scale": 0.0625, "sliding_window": 4096,
		"sliding_window_pattern": 4, "pad_token_id": 0, "bos_token_id": 5, "eos_token_id": 255001, "tie_word_embeddings": true}`,
	model: changed(gatedModel, func(m *layers.ModelConfig) {
		m.Positions, m.Block.Norm, m.Block.Parallel, m.Block.SharedNorm = layers.NoPositions{}, layers.NormConfig{NoBias: true}, true, true
	}),
	names: gatedNames, heads: map[string][]string{"text": textHeads["text"]},
	config: func(k *keys, c *Config) {
		m, pattern := &c.Model, 4
		window := cmp.Or(slidingWindow(*m), &layers.Window{Left: 4095}) // one is written even if no block has it
		m.HeadScale = cmp.Or(m.HeadScale, 1)
		k.gatedSizes(c, "hidden_act")
		k.copy("layer_norm_eps", &m.Block.Norm.Eps, "attention_bias", (*not)(&m.Block.Attention.NoBias), "logit_scale", &m.HeadScale, "sliding_window", &window)
		if !k.writing {
			k.copy("sliding_window_pattern", &pattern)
		}
		if window == nil { // the reference library then leaves out positions, too
			k.fail(unsupported("sliding_window", nil, "a whole number from 1"))
		}
		var local layers.PositionsConfig = layers.Rotary{Interleaved: true}
		if k.writing {
			local = m.Positions // none, unless a block has the window
		}
		if len(m.Variants) > 0 {
			local = m.Variants[0].Positions
		}
		p := k.object("rope_scaling", "rope_parameters")
		local = k.rotation(c, local, p, "rope_theta", "partial_rotary_factor")
		k.put("rope_scaling", p)
		k.layerTypes(m, window, local, func(i int) bool { return pattern < 1 || (i+1)%pattern != 0 })
	},
}
