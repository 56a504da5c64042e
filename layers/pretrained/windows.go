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

// layerTypes copies which blocks have the sliding window and, unless they are nil, the positions local. The argument
// slides says so for a missing layer_types.
func (k *keys) layerTypes(m *layers.ModelConfig, window *layers.Window, local layers.PositionsConfig, slides func(i int) bool) {
	if m.Layers > maxCount {
		k.fail(fmt.Errorf("there can be at most %d layers, got %d", maxCount, m.Layers))
		return
	}
	types := make([]string, m.Layers)
	for i := range types {
		sliding := k.writing && m.Block.Attention.Window != nil || !k.writing && slides(i)
		for _, v := range m.Variants {
			sliding = sliding || slices.Contains(v.Blocks, i)
		}
		if types[i] = fullAttention; sliding {
			types[i] = slidingAttention
		}
	}
	if k.copy("layer_types", &types); k.writing {
		return
	}
	var blocks []int
	for i, kind := range types {
		if kind == slidingAttention {
			blocks = append(blocks, i)
		} else if kind != fullAttention {
			k.fail(unsupported("layer_types", kind, fullAttention+" or "+slidingAttention))
		}
	}
	switch {
	case len(types) != m.Layers:
		k.invalid("layer_types", fmt.Sprintf("a list of %d, one for each layer", m.Layers))
	case window == nil && local == nil || len(blocks) == 0:
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
