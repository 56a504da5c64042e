package layers

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
)

// Positions is a position scheme: it adds the positions of tokens to the data of a model. Its hook Embed can change the
// embeddings, Rotate the queries and keys, and Score the scores of self-attention. A scheme embeds NoPositions to
// inherit the hooks that it doesn't need. A model calls Embed, and the self-attention in its blocks calls Rotate and
// Score. In a model of your own, call Embed yourself, and set the Positions of each MultiHeadAttention.
//
// In each hook, the argument positions gives the positions of the tokens. If it is nil, element t of a sequence is at
// position t. Otherwise it is a node of dtype tensor.Int. With shape (B), it gives the position of the first element of
// each sequence, for example when a sequence is continued. With shape (B, T), it gives the position of every element,
// for example when sequences are padded in front or a Cache holds earlier tokens. B is 1 without a batch axis.
type Positions interface {
	// Embed adds position information to embeddings of shape (T, D) or (B, T, D), float32 or float64, and returns the
	// same shape.
	Embed(b *Build, x, positions *G.Node) (*G.Node, error)

	// Rotate adds position information to queries or keys and returns the same shape. x has shape (T, heads·K) or (B,
	// T, heads·K), with the heads side by side.
	Rotate(b *Build, x *G.Node, heads int, positions *G.Node) (*G.Node, error)

	// Score returns the mask m of self-attention with the scheme's additions: a Bias, Slopes, or fewer allowed keys.
	// The queries q, of shape (T, H·K) or (B, T, H·K), and the keys k, of shape (S, G·K) or (B, S, G·K), are results of
	// Rotate. The argument positions gives the positions of the queries. Without a Cache in the Build, the keys have
	// the same positions. With a Cache, S is the Capacity, key j is at position j, and the mask's Offsets are the
	// positions of the first queries.
	Score(b *Build, q, k, positions *G.Node, m Mask) (Mask, error)

	// MaxLen returns the length of the longest sequence, or 0 if there is no limit.
	MaxLen() int
}

// PositionsConfig describes Positions, such as Learned, Rotary or NoPositions. You can define your own, but it can't be
// written to JSON.
type PositionsConfig interface {
	// New makes the Positions. The argument dim is the width of the embeddings, and the argument a describes the
	// blocks' self-attention. If a.KeyInput isn't 0, it is the blocks' width; otherwise it is dim.
	New(p *Params, dim int, a AttentionConfig) (Positions, error)
}

// singleSchemes lists the position schemes that have a name, without PositionsList.
var singleSchemes = choices.Types[PositionsConfig]{What: "positions", Table: choices.Table[choices.Type[PositionsConfig]]{
	choices.TypeOf[NoPositions, PositionsConfig]("none", "no positions: only the mask orders tokens"),
	choices.TypeOf[Learned, PositionsConfig]("learned", "a learned vector for each position, added to the embeddings"),
	choices.TypeOf[Sinusoidal, PositionsConfig]("sinusoidal", "sines and cosines, added to the embeddings"),
	choices.TypeOf[Rotary, PositionsConfig]("rotary", "queries and keys turned by angles that grow with the position"),
	choices.TypeOf[ALiBi, PositionsConfig]("alibi", "scores lowered in proportion to the distance"),
	choices.TypeOf[RelativeBias, PositionsConfig]("relative_bias", "a learned number for each distance, added to the scores, as in T5"),
	choices.TypeOf[Disentangled, PositionsConfig]("disentangled", "learned vectors for distances, multiplied with queries and keys and added to the scores, as in DeBERTa"),
}}

// positionSchemes lists all position schemes that have a name.
var positionSchemes = choices.Types[PositionsConfig]{What: "positions", Table: append(slices.Clip(singleSchemes.Table),
	choices.TypeOf[PositionsList, PositionsConfig]("several", "several of these schemes at once"))}

// Choices returns the tables of this package that the flags of the command heed choose from, by the names of the flags.
func Choices() map[string]choices.Choice {
	return map[string]choices.Choice{"positions": positionSchemes.Choice(), "norm": normChoice, "activation": activations.Choice(), "precision": precisions.Choice()}
}

// positionsJSON is a PositionsConfig that can be written to JSON and read back.
type positionsJSON struct{ PositionsConfig }

func (p positionsJSON) MarshalJSON() ([]byte, error) {
	return positionSchemes.Marshal(p.PositionsConfig)
}

func (p *positionsJSON) UnmarshalJSON(data []byte) (err error) {
	p.PositionsConfig, err = positionSchemes.Unmarshal(data)
	return err
}

// NoPositions adds no position information; only the mask orders tokens. A scheme embeds NoPositions to inherit the
// hooks that it doesn't need.
type NoPositions struct{}

// New returns NoPositions.
func (NoPositions) New(*Params, int, AttentionConfig) (Positions, error) { return NoPositions{}, nil }

// Embed returns x.
func (NoPositions) Embed(_ *Build, x, _ *G.Node) (*G.Node, error) { return x, nil }

// Rotate returns x.
func (NoPositions) Rotate(_ *Build, x *G.Node, _ int, _ *G.Node) (*G.Node, error) { return x, nil }

// Score returns m.
func (NoPositions) Score(_ *Build, _, _, _ *G.Node, m Mask) (Mask, error) { return m, nil }

// MaxLen returns 0: there is no limit.
func (NoPositions) MaxLen() int { return 0 }

// positionIDs returns the position of each vector of x, (B, T, D) or (T, D), as a node of shape (B, T) or (T). If the
// argument limit isn't 0, running the graph returns an error for a position outside [0, limit).
func positionIDs(b *Build, layer string, x, positions *G.Node, limit int) (*G.Node, error) {
	if positions.Graph() != x.Graph() {
		return nil, fmt.Errorf("%s: the positions and the input must belong to the same graph", layer)
	}
	return ops.PositionIDs(b.Env(), positions, nil, x.Shape()[:x.Dims()-1], layer, limit)
}
