package layers

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/memory"
)

// A BlockVariant describes blocks of a model that differ from the others, such as the blocks that see all keys in a
// model with a window (Child et al., 2019; Beltagy et al., Longformer, 2020).
type BlockVariant struct {
	Blocks []int `json:"blocks"` // numbers of the blocks, from 0

	Window *Window `json:"window,omitzero"` // replaces the Window of the blocks' Attention; nil for no limit

	// Positions replaces the model's position scheme in self-attention: a Rotary, ALiBi or NoPositions. nil means the
	// model's scheme. The embeddings always get the positions of the model's scheme.
	Positions PositionsConfig `json:"positions,omitzero"`

	// FeedForward replaces the FeedForward of the blocks, such as one layer in place of experts in the first blocks
	// (DeepSeekMoE, 2024); nil means the same as in other blocks.
	FeedForward *FeedForwardConfig `json:"feed_forward,omitzero"`

	// NoNorm1 leaves out the norm of self-attention's input, and its parameters. ModernBERT's first block has no such
	// norm, because the embeddings have one (Warner et al., 2024). There must be no PostNorm.
	NoNorm1 bool `json:"no_norm1,omitzero"`
}

// MarshalJSON returns the variant as JSON. See ModelConfig.MarshalJSON for errors.
func (v BlockVariant) MarshalJSON() ([]byte, error) {
	type plain BlockVariant
	return json.Marshal(struct {
		plain
		Positions positionsJSON `json:"positions,omitzero"` // shadows plain's field
	}{plain(v), positionsJSON{v.Positions}})
}

// UnmarshalJSON replaces the variant with the one in data. It returns an error if data has an unknown field or position
// scheme.
func (v *BlockVariant) UnmarshalJSON(data []byte) error {
	type plain BlockVariant
	var fields struct {
		plain
		Positions positionsJSON `json:"positions"`
	}
	if err := choices.Decode(data, &fields); err != nil {
		return fmt.Errorf("a variant of blocks: %w", err)
	}
	*v = BlockVariant(fields.plain)
	v.Positions = fields.Positions.PositionsConfig
	return nil
}

// HiddenWidths returns the means, over all blocks, of what ExpertsConfig.Sizes returns for their feed-forward layers.
func (c ModelConfig) HiddenWidths() (whole, active float64) {
	add := func(f FeedForwardConfig, blocks int) {
		x, y := f.Experts.Sizes(cmp.Or(f.Hidden, memory.Product(4, c.Dim)))
		share := float64(blocks) / float64(max(c.Layers, 1))
		whole, active = whole+share*float64(x), active+share*float64(y)
	}
	others := max(c.Layers, 1)
	for _, v := range c.Variants {
		if v.FeedForward != nil {
			add(*v.FeedForward, len(v.Blocks))
			others -= len(v.Blocks)
		}
	}
	add(c.Block.FeedForward, others)
	return whole, active
}

// A variant is the configuration of one block.
type variant struct {
	block     BlockConfig
	positions Positions
	own       *FeedForwardConfig // of the BlockVariant
}

// variants returns the configurations of the blocks in c.Variants, by their numbers. The argument positions is the
// model's scheme.
func (c ModelConfig) variants(p *Params, name string, positions Positions) (map[int]variant, error) {
	blocks := map[int]variant{}
	for i, v := range c.Variants {
		fail := func(format string, args ...any) (map[int]variant, error) {
			return nil, fmt.Errorf("%s: Variants[%d]: %w", name, i, fmt.Errorf(format, args...))
		}
		changed := variant{c.Block, positions, v.FeedForward}
		changed.block.Attention.Window, changed.block.noNorm1 = v.Window, v.NoNorm1
		if v.FeedForward != nil {
			changed.block.FeedForward = *v.FeedForward
		}
		switch v.Positions.(type) {
		case nil:
		case Rotary, ALiBi, NoPositions: // these don't change embeddings, and have no parameters
			var err error
			if changed.positions, err = v.Positions.New(p, c.Dim, c.Block.Attention); err != nil {
				return fail("%w", err)
			}
		default:
			return fail("Positions must be Rotary, ALiBi or NoPositions, or nil for the model's scheme, got %T", v.Positions)
		}
		if v.NoNorm1 && c.Block.PostNorm {
			return fail("NoNorm1 must be false with PostNorm, because the norm follows the residual connection")
		}
		if len(v.Blocks) == 0 {
			return fail("Blocks must have the number of at least one block")
		}
		for _, n := range v.Blocks {
			if n < 0 || n >= c.Layers {
				return fail("Blocks must be from 0 to %d, got %d", c.Layers-1, n)
			}
			if _, twice := blocks[n]; twice {
				return fail("block %d already has a variant: name it once", n)
			}
			blocks[n] = changed
		}
	}
	return blocks, nil
}
