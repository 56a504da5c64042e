package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// RelativeBias adds a learned number to every score of self-attention. The number depends on the distance from query to
// key (Raffel et al., 2020, T5). Each short distance has its own number. Longer distances in the same bucket share a
// number, and so do all distances from MaxDistance on. Each head has its own numbers. All blocks of a stack share the
// numbers, unless PerBlock is set.
//
// In causal attention, all buckets are for keys up to the query; otherwise half of the buckets are for keys after the
// query. Its positions count along the row; it ignores the Build's Positions. There is no limit on the length, but the
// bias takes memory for one number per head, query and key. Score returns an error if the mask has a Bias, or if it has
// an offset and there is no Cache. T5 doesn't scale its scores: set AttentionConfig.Scale to 1 for T5.
type RelativeBias struct {
	Buckets     int  `json:"buckets,omitzero"`      // number of buckets per head; 32 if 0
	MaxDistance int  `json:"max_distance,omitzero"` // distances from this one on share a bucket; 128 if 0
	Init        Init `json:"init,omitzero"`         // Normal(1/√D) if zero, where D is the model's width
	PerBlock    bool `json:"per_block,omitzero"`    // each block has numbers of its own (umT5, 2023); only in ModelConfig.Positions
}

// New makes the table of biases, the parameter "weight" of shape (Buckets, H). With PerBlock, blocks make their tables.
func (c RelativeBias) New(p *Params, dim int, a AttentionConfig) (Positions, error) {
	r := &relativeBias{maxDistance: cmp.Or(c.MaxDistance, 128), name: p.scopeName("relative bias")}
	buckets, heads := cmp.Or(c.Buckets, 32), cmp.Or(a.Heads, 1)
	if err := positive(r.name, size{"Dim", dim}, size{"Heads", heads}); err != nil {
		return nil, err
	}
	for _, oneWay := range []bool{false, true} { // New doesn't know yet whether masks are causal
		if err := (ops.Relative{MaxDistance: r.maxDistance, OneWay: oneWay}).Check(r.name, buckets); err != nil {
			return nil, err
		}
	}
	if c.PerBlock {
		return r, nil
	}
	var err error
	r.weight, err = p.New("weight", c.Init.or(Normal(1/math.Sqrt(float64(dim)))), buckets, heads)
	return r, err
}

type relativeBias struct {
	NoPositions
	weight      *Param // (Buckets, H)
	maxDistance int
	name        string
}

// Score sets the mask's Bias, which has shape (1, H, T, S) or, with a Cache, (B, H, T, S).
func (r *relativeBias) Score(b *Build, q, k, positions *G.Node, m Mask) (Mask, error) {
	if q.Dims() < 2 || k.Dims() < 2 {
		return m, fmt.Errorf("%s: queries and keys must have shapes (B, T, H·K) and (B, S, G·K), or the same without B", r.name)
	}
	if r.weight == nil {
		return m, fmt.Errorf("%s: PerBlock is for a ModelConfig's Positions, not for an element of a list", r.name)
	}
	if m.Bias != nil {
		return m, fmt.Errorf("%s: the mask can't have a Bias, because the model sets it", r.name)
	}
	if cached := b.Cache != nil && positions != nil && m.Offsets != nil; !cached {
		if m.Offset != 0 || m.Offsets != nil {
			return m, fmt.Errorf("%s: the mask can't have an offset, because queries and keys are tokens of the same row", r.name)
		}
		positions = nil
	}
	w, err := b.Bind(q.Graph(), r.weight)
	if err != nil {
		return m, err
	}
	queries, keys := q.Shape()[q.Dims()-2], k.Shape()[k.Dims()-2]
	m.Bias, err = ops.RelativeBias(b.Env(), w, positions, queries, keys, ops.Relative{MaxDistance: r.maxDistance, OneWay: m.Causal})
	if err != nil {
		return m, fmt.Errorf("%s: %w", r.name, err)
	}
	return m, nil
}
