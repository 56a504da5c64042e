package layers

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Rotary tells positions apart by turning queries and keys (Su et al., 2021, RoFormer): it takes the first Dim elements
// of a vector for Dim/2 pairs (u, v) and turns pair i of the vector at position p by the angle a = p·Base^(−2i/Dim),
//
//	(u, v) -> (u·cos a − v·sin a, v·cos a + u·sin a)
//
// so that the product of a query and a key depends on how far they are apart alone. It has no parameters and no longest
// sequence. Its meaning is that of the ONNX operator RotaryEmbedding. The zero Rotary turns whole vectors, from
// position 0 on. It serves as it is: New returns it.
type Rotary struct {
	None

	// Base decides how slowly the later pairs turn; 10,000 if 0.
	Base float64 `json:"base,omitzero"`

	// Dim is how many elements of a head are turned, the first of them: an even number. The others stay as they are.
	// All are turned if it is 0.
	Dim int `json:"dim,omitzero"`

	// Interleaved makes pairs of neighbours, (0, 1), (2, 3), …, as GPT-J has them, instead of halves, (0, Dim/2),
	// (1, Dim/2 + 1), …, as GPT-NeoX and Llama have them. Weights trained with one don't suit the other.
	Interleaved bool `json:"interleaved,omitzero"`

	// Offset is the position of the first query or key, where Turn is given no positions.
	Offset int `json:"offset,omitzero"`

	// Scaling slows the pairs down, for sequences longer than those that the model was trained on.
	Scaling RotaryScaling `json:"scaling,omitzero"`
}

// New returns r, checked for the heads of an attention.
func (r Rotary) New(_ *Params, dim int, a AttentionConfig) (Positions, error) {
	a, err := a.withDefaults(rotaryName, dim)
	if err != nil {
		return nil, err
	}
	return r, r.check(rotaryName, a.HeadDim)
}

const rotaryName = "rotary positions"

// Turn turns queries or keys of shape (B, T, H·K) or (T, H·K), whose heads lie side by side, or (B, H, T, K), (B, T, K)
// or (T, K), where heads is 1: float32 or float64. The output has the same shape.
//
// positions may be nil: element t of a sequence is then at position Offset + t. Otherwise it is a node of dtype
// tensor.Int that takes Offset's place. Of shape (B), it is the position of each batch element's first query or key, as
// where keys are cached; of shape (B, T), the position of every one, as where sequences are padded in front. B is 1
// without a batch axis. A position may be negative.
func (r Rotary) Turn(b *Build, x *G.Node, heads int, positions *G.Node) (*G.Node, error) {
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

// check checks a Rotary for heads of a width.
func (r Rotary) check(layer string, width int) error {
	if r.Base != 0 && !(r.Base >= 1/ops.Largest && r.Base <= ops.Largest) {
		return fmt.Errorf("%s: Base must be from %v to %v, or 0 for 10,000, got %v", layer, 1/ops.Largest, ops.Largest, r.Base)
	}
	if r.Dim < 0 || r.Dim%2 != 0 || r.Dim > width {
		return fmt.Errorf("%s: Dim must be an even number of a head's %d elements, or 0 for all, got %d", layer, width, r.Dim)
	}
	if r.Dim == 0 && width%2 != 0 {
		return fmt.Errorf("%s: pairs need heads of an even width, or a Dim that is even, got a width of %d", layer, width)
	}
	r = r.complete(width)
	return r.Scaling.check(layer, r.Dim, r.Base)
}

// complete returns a Rotary for heads of a width that says what a 0 means.
func (r Rotary) complete(width int) Rotary {
	r.Base, r.Dim = cmp.Or(r.Base, 10000), cmp.Or(r.Dim, width)
	return r
}
