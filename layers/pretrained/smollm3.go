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
	if m.Layers > maxCount {
		k.fail(fmt.Errorf("there can be at most %d layers, got %d", maxCount, m.Layers))
		return
	}
	window := slidingWindow(*m)
	used, every, rotated, types := window != nil, 4, make([]int, m.Layers), make([]string, m.Layers)
	k.copy("use_sliding_window", &used, "sliding_window", &window)
	if !k.writing {
		k.copy("no_rope_layer_interval", &every)
	}
	for i := range rotated {
		if k.writing || every < 1 || (i+1)%every != 0 {
			rotated[i] = 1
		}
	}
	slides := make([]bool, m.Layers)
	for i := range slides {
		slides[i] = m.Block.Attention.Window != nil
	}
	for _, v := range m.Variants { // none while reading
		for _, i := range v.Blocks {
			if slides[i] = v.Window != nil; v.Positions == (layers.NoPositions{}) {
				rotated[i] = 0
			}
		}
	}
	if k.copy("no_rope_layers", (*ids)(&rotated)); len(rotated) != m.Layers {
		k.invalid("no_rope_layers", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
		return
	}
	for i := range types {
		if types[i] = fullAttention; slides[i] || !k.writing && used && window != nil && rotated[i] == 0 {
			types[i] = slidingAttention
		}
	}
	if k.copy("layer_types", &types); k.writing {
		return
	}
	if len(types) != m.Layers {
		k.invalid("layer_types", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
		return
	}
	variants := []layers.BlockVariant{{Positions: layers.NoPositions{}}, {Window: window}, {Window: window, Positions: layers.NoPositions{}}}
	for i, kind := range types {
		at := 0 // 1 without positions, plus 2 with the window
		if rotated[i] == 0 {
			at = 1
		}
		switch {
		case kind == slidingAttention && window != nil:
			at += 2
		case kind != fullAttention:
			k.fail(unsupported("layer_types", kind, fullAttention+", or "+slidingAttention+" with a sliding_window"))
		}
		if at > 0 {
			variants[at-1].Blocks = append(variants[at-1].Blocks, i)
		}
	}
	for _, v := range variants {
		if v.Blocks != nil {
			m.Variants = append(m.Variants, v)
		}
	}
}
