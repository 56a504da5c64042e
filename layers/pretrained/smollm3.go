package pretrained

import (
	"fmt"

	"github.com/heed-go/heed/layers"
)

// smolLM3 is the architecture of SmolLM 3: every fourth block has no positions.
var smolLM3 = architecture{
	class: "SmolLM3ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
		"num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 2000000,
		"bos_token_id": 128000, "eos_token_id": 128001, "pad_token_id": 128004, "tie_word_embeddings": true}`,
	model: gatedModel, classifier: lastToken, names: gatedNames, heads: joined(textHeads, scoreTags, oldSpans),
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.gated(c)
		k.copy("attention_bias", (*not)(&a.NoBias), "mlp_bias", (*not)(&f.NoBias))
		k.layersWithoutPositions(m)
	},
}

// layersWithoutPositions copies no_rope_layers, which has a 0 for each block without positions, and layer_types, which
// says which blocks have the sliding window.
func (k *keys) layersWithoutPositions(m *layers.ModelConfig) {
	window := slidingWindow(*m)
	used, every, rotated := window != nil, 4, make([]int, len(k.perLayer(m)))
	k.copy("use_sliding_window", &used, "sliding_window", &window)
	if !k.writing {
		k.copy("no_rope_layer_interval", &every)
	}
	for i := range rotated {
		if k.writing || every < 1 || (i+1)%every != 0 {
			rotated[i] = 1
		}
	}
	for _, v := range m.Variants { // none while reading
		for _, i := range v.Blocks {
			if v.Positions == (layers.NoPositions{}) {
				rotated[i] = 0
			}
		}
	}
	if k.copy("no_rope_layers", (*ids)(&rotated)); len(rotated) != m.Layers {
		k.invalid("no_rope_layers", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
		return
	}
	sliding := k.slidingLayers(m, func(i int) bool { return used && window != nil && rotated[i] == 0 })
	if k.writing {
		return
	}
	variants := []layers.BlockVariant{{Positions: layers.NoPositions{}}, {Window: window}, {Window: window, Positions: layers.NoPositions{}}}
	for i, slides := range sliding {
		if slides && window == nil {
			k.fail(unsupported("layer_types", slidingAttention, fullAttention+", or "+slidingAttention+" with a sliding_window"))
		}
		kind := 0 // 1 without positions, plus 2 with the window
		if rotated[i] == 0 {
			kind = 1
		}
		if slides {
			kind += 2
		}
		if kind > 0 {
			variants[kind-1].Blocks = append(variants[kind-1].Blocks, i)
		}
	}
	for _, v := range variants {
		if v.Blocks != nil {
			m.Variants = append(m.Variants, v)
		}
	}
}
