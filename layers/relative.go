package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// RelativeBias adds a learned number to every score of self-attention, by how far the key is from the query (Raffel et
// al., 2020, T5): near distances have a number each, farther ones share the number of their bucket, and all from
// MaxDistance on share one. Each head has numbers of its own, and all blocks of a stack share them.
//
// In causal attention all buckets are for keys before the query; elsewhere half of them are for the keys after it.
// Places are counted along the row, whatever the Build's Positions. It has no longest sequence, but takes
// memory for a number of every head, query and key. A mask that has a Bias
// or, without a Cache, an offset is an error. T5 doesn't scale its scores: that is AttentionConfig.Scale, 1 for T5.
type RelativeBias struct {
	Buckets     int  `json:"buckets,omitzero"`      // how many numbers a head has; 32 if 0
	MaxDistance int  `json:"max_distance,omitzero"` // 128 if 0
	Init        Init `json:"init,omitzero"`         // Normal(1/√D) if it is zero, D being the model's width
}

// New makes the table of the numbers, the parameter "weight" of shape (Buckets, H).
func (c RelativeBias) New(p *Params, dim int, a AttentionConfig) (Positions, error) {
	r := &relativeBias{maxDistance: cmp.Or(c.MaxDistance, 128), name: p.scopeName("relative bias")}
	buckets, heads := cmp.Or(c.Buckets, 32), cmp.Or(a.Heads, 1)
	if err := positive(r.name, size{"Dim", dim}, size{"Heads", heads}); err != nil {
		return nil, err
	}
	for _, oneWay := range []bool{false, true} { // what it is used for isn't known yet
		if err := (ops.Relative{MaxDistance: r.maxDistance, OneWay: oneWay}).Check(r.name, buckets); err != nil {
			return nil, err
		}
	}
	var err error
	r.weight, err = p.New("weight", c.Init.or(Normal(1/math.Sqrt(float64(dim)))), buckets, heads)
	return r, err
}

type relativeBias struct {
	None
	weight      *Param // (Buckets, H)
	maxDistance int
	name        string
}

// Score sets the mask's Bias, which has shape (1, H, T, S) or, with a Cache, (B, H, T, S).
func (r *relativeBias) Score(b *Build, q, k, positions *G.Node, m Mask) (Mask, error) {
	if q.Dims() < 2 || k.Dims() < 2 {
		return m, fmt.Errorf("%s: there must be queries of shape (B, T, H·K) or (T, H·K), and keys", r.name)
	}
	if m.Bias != nil {
		return m, fmt.Errorf("%s: the mask can't have a Bias, as the model has its own", r.name)
	}
	if cached := b.Cache != nil && positions != nil && m.Offsets != nil; !cached {
		if m.Offset != 0 || m.Offsets != nil {
			return m, fmt.Errorf("%s: the mask can't have an offset, as queries and keys are tokens of one row", r.name)
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
