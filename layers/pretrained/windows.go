package pretrained

import (
	"fmt"
	"slices"

	"github.com/heed-go/heed/layers"
)

// The values of layer_types.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

// perLayer returns a value for each layer, or nil with an error if there are too many.
func (k *keys) perLayer(m *layers.ModelConfig) []bool {
	if m.Layers > maxCount {
		k.fail(fmt.Errorf("there can be at most %d layers, got %d", maxCount, m.Layers))
		return nil
	}
	return make([]bool, m.Layers)
}

// slidingLayers copies which blocks have the sliding window. The argument slides says so for a missing layer_types.
func (k *keys) slidingLayers(m *layers.ModelConfig, slides func(i int) bool) []bool {
	sliding := k.perLayer(m)
	types := make([]string, len(sliding))
	for i := range sliding {
		sliding[i] = k.writing && m.Block.Attention.Window != nil || !k.writing && slides(i)
		for _, v := range m.Variants {
			_, rotary := v.Positions.(layers.Rotary)
			sliding[i] = sliding[i] || slices.Contains(v.Blocks, i) && (rotary || v.Window != nil)
		}
		if types[i] = fullAttention; sliding[i] {
			types[i] = slidingAttention
		}
	}
	if k.copy("layer_types", &types); len(types) != len(sliding) {
		k.invalid("layer_types", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
		return nil
	}
	for i, kind := range types {
		if sliding[i] = kind == slidingAttention; !sliding[i] && kind != fullAttention {
			k.fail(unsupported("layer_types", kind, fullAttention+" or "+slidingAttention))
		}
	}
	return sliding
}

// layerTypes copies which blocks have the sliding window and, unless they are nil, the positions local. The argument
// slides says so for a missing layer_types.
func (k *keys) layerTypes(m *layers.ModelConfig, window *layers.Window, local layers.PositionsConfig, slides func(i int) bool) {
	var blocks []int
	for i, sliding := range k.slidingLayers(m, slides) {
		if sliding {
			blocks = append(blocks, i)
		}
	}
	switch {
	case k.writing || window == nil && local == nil || len(blocks) == 0:
	case len(blocks) == m.Layers && local == nil:
		m.Block.Attention.Window = window
	default:
		m.Variants = []layers.BlockVariant{{Blocks: blocks, Window: window, Positions: local}}
	}
}

// slidingWindow returns the first window that a block has, or nil.
func slidingWindow(m layers.ModelConfig) *layers.Window {
	for _, v := range m.Variants {
		if v.Window != nil {
			return v.Window
		}
	}
	return m.Block.Attention.Window
}
