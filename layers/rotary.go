package layers

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Rotary rotates queries and keys by angles that depend on the position (Su et al., 2021, RoFormer). It treats the
// first Dim elements of a vector as Dim/2 pairs (u, v), and rotates pair i of the vector at position p by the angle a =
// p·Base^(−2i/Dim):
//
//	(u, v) -> (u·cos a − v·sin a, v·cos a + u·sin a)
//
// The product of a query and a key then depends only on the distance between their positions. Rotary has no parameters
// and no limit on the length, and computes the same as the ONNX operator RotaryEmbedding. The zero Rotary rotates whole
// vectors, and its positions count from 0. Rotary is its own configuration: New validates and returns it.
type Rotary struct {
	NoPositions

	// Base is the base of the angles. A larger Base makes the later pairs rotate more slowly. 0 means 10,000.
	Base float64 `json:"base,omitzero"`

	// Dim is the number of rotated elements per head: Rotary rotates the first Dim elements. It must be even. 0 means
	// all.
	Dim int `json:"dim,omitzero"`

	// Interleaved pairs neighbouring elements, (0, 1), (2, 3), …, as in GPT-J. Otherwise the pairs are (0, Dim/2), (1,
	// Dim/2 + 1), …, as in GPT-NeoX and Llama. Weights trained with one order don't work with the other.
	Interleaved bool `json:"interleaved,omitzero"`

	// Offset is the position of the first query or key if Rotate gets no positions.
	Offset int `json:"offset,omitzero"`

	// Scaling slows the rotation, for longer sequences than in training.
	Scaling RotaryScaling `json:"scaling,omitzero"`
}

// New returns r, or an error if r is invalid for the width of the heads.
func (r Rotary) New(_ *Params, dim int, a AttentionConfig) (Positions, error) {
	a, err := a.withDefaults(rotaryName, dim)
	if err != nil {
		return nil, err
	}
	width, _ := a.PositionWidth(dim)
	return r, r.check(rotaryName, width)
}

const rotaryName = "rotary positions"

// Rotate rotates queries or keys, float32 or float64, and returns the same shape. x has shape (B, T, heads·K) or (T,
// heads·K), with the heads side by side. If the argument heads is 1, x may also have shape (B, H, T, K).
//
// If positions is nil, element t of a sequence is at position Offset + t. Otherwise positions is a node as described at
// Positions, and Offset isn't used. A position may be negative.
func (r Rotary) Rotate(b *Build, x *G.Node, heads int, positions *G.Node) (*G.Node, error) {
	width, err := ops.HeadWidth(rotaryName, x, heads)
	if err != nil {
		return nil, err
	}
	if err := r.check(rotaryName, width); err != nil {
		return nil, err
	}
	r = r.complete(width)
	return ops.Rotate(b.Env(), x, positions, ops.Rotary{
		Name: rotaryName, Heads: heads, Frequencies: r.Scaling.frequencies(r.Dim, r.Base), Magnitude: r.Scaling.magnitude(),
		Interleaved: r.Interleaved, Offset: r.Offset,
	})
}

// check returns an error if r is invalid for heads of the given width.
func (r Rotary) check(layer string, width int) error {
	switch {
	case r.Base != 0 && !(r.Base >= 1/ops.Largest && r.Base <= ops.Largest):
		return fmt.Errorf("%s: Base must be from %v to %v, or 0 for 10,000, got %v", layer, 1/ops.Largest, ops.Largest, r.Base)
	case r.Dim < 0 || r.Dim%2 != 0 || r.Dim > width:
		return fmt.Errorf("%s: Dim must be even and at most the width of a head, %d, or 0 for all, got %d", layer, width, r.Dim)
	case r.Dim == 0 && width%2 != 0:
		return fmt.Errorf("%s: heads must have an even width unless Dim is set, got width %d", layer, width)
	}
	r = r.complete(width)
	return r.Scaling.check(layer, r.Dim, r.Base)
}

// complete returns r with the defaults for fields that are 0, for heads of the given width.
func (r Rotary) complete(width int) Rotary {
	r.Base, r.Dim = cmp.Or(r.Base, 10000), cmp.Or(r.Dim, width)
	return r
}
