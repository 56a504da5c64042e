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
	model: gatedModel, classifier: lastToken, names: gatedNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.gated(c)
		k.copy("attention_bias", (*not)(&a.NoBias), "mlp_bias", (*not)(&f.NoBias))
		k.only("use_sliding_window", false)
		k.layersWithoutPositions(m)
	},
}

// layersWithoutPositions copies no_rope_layers, which has a 0 for each block without positions, and the types of
// attention, which must be full.
func (k *keys) layersWithoutPositions(m *layers.ModelConfig) {
	if m.Layers > maxCount {
		k.fail(fmt.Errorf("there can be at most %d layers, got %d", maxCount, m.Layers))
		return
	}
	every, rotated, types := 4, make([]int, m.Layers), make([]string, m.Layers)
	if !k.writing {
		k.copy("no_rope_layer_interval", &every)
	}
	for i := range rotated {
		if types[i] = fullAttention; k.writing || every < 1 || (i+1)%every != 0 {
			rotated[i] = 1
		}
	}
	for _, v := range m.Variants {
		for _, i := range v.Blocks {
			if rotated[i] = 0; v.Window != nil {
				types[i] = slidingAttention
			}
		}
	}
	if k.copy("no_rope_layers", (*ids)(&rotated), "layer_types", &types); k.writing {
		return
	}
	var without []int
	for i, x := range rotated {
		if x == 0 {
			without = append(without, i)
		}
	}
	for _, kind := range types {
		if kind != fullAttention {
			k.fail(unsupported("layer_types", kind, fullAttention))
		}
	}
	if len(rotated) != m.Layers {
		k.invalid("no_rope_layers", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
	} else if without != nil {
		m.Variants = []layers.BlockVariant{{Blocks: without, Positions: layers.NoPositions{}}}
	}
}
