package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/internal/ops"
)

// Positions are a way to tell the tokens of a sequence apart. A scheme acts where its paper has it act: on the
// embeddings, on queries and keys, or on the scores of self-attention. It embeds None for the hooks that it has no use
// for. A model calls the first hook, and its blocks' self-attention the other two; a model made by hand can do the
// same, or give a MultiHeadAttention its Positions.
//
// Each hook is told where the tokens are by positions. If nil, element t of a sequence is at position t. Otherwise it
// is a node of dtype tensor.Int: of shape (B), it is the position of each batch element's first element, as where a
// sequence is continued; of shape (B, T), the position of every one, as where sequences are padded in front or a Cache
// holds what came before. B is 1 without a batch axis.
type Positions interface {
	// Embed adds positions to embeddings of shape (T, D) or (B, T, D), float32 or float64, and returns the same shape.
	Embed(b *Build, x, positions *G.Node) (*G.Node, error)

	// Turn gives positions to queries or keys of shape (T, H·K) or (B, T, H·K), so many heads side by side, and returns
	// the same shape.
	Turn(b *Build, x *G.Node, heads int, positions *G.Node) (*G.Node, error)

	// Score returns the mask of self-attention with what the scheme adds to the scores: in its Bias or its Slopes, or
	// by narrowing what it allows. The queries q, of shape (T, H·K) or (B, T, H·K), and the keys k, (S, G·K) or
	// (B, S, G·K), have been turned. positions are those of the queries. The keys have the same ones, but for a Build
	// with a Cache: there key j of S = Capacity is at position j, and the mask's Offsets are the positions of the first
	// queries.
	Score(b *Build, q, k, positions *G.Node, m Mask) (Mask, error)

	// MaxLen returns the length of the longest sequence, or 0 if there is no limit.
	MaxLen() int
}

// PositionsConfig describes Positions, such as Learned, Rotary or None. A user's own type works as well as this
// package's, but can't go to JSON.
type PositionsConfig interface {
	// New makes the Positions of a stack of blocks of width dim, whose self-attention is a.
	New(p *Params, dim int, a AttentionConfig) (Positions, error)
}

// positionKinds are the position schemes that have a name.
var positionKinds = kinds.Types[PositionsConfig]{What: "positions", Table: kinds.Table[kinds.Type[PositionsConfig]]{
	kinds.TypeOf[None, PositionsConfig]("none", "no positions: only the mask orders tokens"),
	kinds.TypeOf[Learned, PositionsConfig]("learned", "a learned vector for each position, added to the embeddings"),
	kinds.TypeOf[Sinusoidal, PositionsConfig]("sinusoidal", "sines and cosines, added to the embeddings"),
	kinds.TypeOf[Rotary, PositionsConfig]("rotary", "queries and keys turned by angles that grow with the position"),
	kinds.TypeOf[ALiBi, PositionsConfig]("alibi", "scores lowered in proportion to the distance"),
	kinds.TypeOf[RelativeBias, PositionsConfig]("relative_bias", "a learned number for each distance, added to the scores, as in T5"),
}}

func init() { kinds.Choices["positions"] = positionKinds.Choice() }

// positionsJSON is a PositionsConfig that goes to JSON and back.
type positionsJSON struct{ PositionsConfig }

func (p positionsJSON) MarshalJSON() ([]byte, error) {
	return positionKinds.Marshal(p.PositionsConfig)
}

func (p *positionsJSON) UnmarshalJSON(data []byte) (err error) {
	p.PositionsConfig, err = positionKinds.Unmarshal(data)
	return err
}

// None leaves telling positions apart to the mask. A scheme embeds it for the hooks that it has no use for.
type None struct{}

// New returns None.
func (None) New(*Params, int, AttentionConfig) (Positions, error) { return None{}, nil }

// Embed returns x.
func (None) Embed(_ *Build, x, _ *G.Node) (*G.Node, error) { return x, nil }

// Turn returns x.
func (None) Turn(_ *Build, x *G.Node, _ int, _ *G.Node) (*G.Node, error) { return x, nil }

// Score returns m.
func (None) Score(_ *Build, _, _, _ *G.Node, m Mask) (Mask, error) { return m, nil }

// MaxLen returns 0: there is no limit.
func (None) MaxLen() int { return 0 }

// positionIDs returns the position of each vector of x, (B, T, D) or (T, D): of shape (B, T) or (T). Where most isn't
// 0, it is an error for one to be outside [0, most), when the graph runs.
func positionIDs(b *Build, layer string, x, positions *G.Node, most int) (*G.Node, error) {
	if positions.Graph() != x.Graph() {
		return nil, fmt.Errorf("%s: the positions belong to another graph than the input", layer)
	}
	return ops.PositionIDs(b.Env(), positions, nil, x.Shape()[:x.Dims()-1], layer, most)
}
