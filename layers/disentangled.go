package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// Disentangled adds products of contents and distances to the scores of self-attention (He et al., DeBERTa, 2021). Each
// distance δ from key to query has a learned vector, and the score of query i and key j is
//
//	(q_i·k_j + q_i·W_k·d_δ + k_j·W_q·d_δ)·scale,  δ = i − j
//
// The attention's own weights project the vectors d, or other ones if AttentionConfig.DistanceKeys and DistanceQueries
// are set. All blocks of a stack share the vectors. If AttentionConfig.Scale is 0, it is 1/√(n·K), where n is the
// number of these products, as in the paper.
//
// Positions count along the row; Disentangled ignores the Build's Positions. The memory is linear in the length, and
// there is no limit on it: from MaxDistance on, all distances of a direction share a vector. Score returns an error if
// the mask already has Distances.
type Disentangled struct {
	// Buckets is the number of vectors per direction, an even number. Half of them belong to one distance each, and the
	// others to ranges of distances that grow exponentially, as in DeBERTa-v2. 0 means one for each distance below
	// MaxDistance, as in DeBERTa.
	Buckets     int `json:"buckets,omitzero"`
	MaxDistance int `json:"max_distance,omitzero"` // distances from this one on share a vector; 128 if 0

	NoKeys    bool `json:"no_keys,omitzero"`    // leave out q_i·W_k·d_δ ("c2p")
	NoQueries bool `json:"no_queries,omitzero"` // leave out k_j·W_q·d_δ ("p2c")

	Norm    *NormConfig `json:"norm,omitzero"`    // a norm of the vectors, with the scope norm; nil for none
	Dropout float64     `json:"dropout,omitzero"` // dropout rate of the vectors, in training
	Init    Init        `json:"init,omitzero"`    // of the vectors; Normal(1/√D) if zero, where D is the model's width
}

// New makes the table of vectors, the parameter "weight" of shape (2·Buckets, D), or (2·MaxDistance, D) without
// Buckets. Row Buckets or MaxDistance is for distance 0.
func (c Disentangled) New(p *Params, dim int, a AttentionConfig) (Positions, error) {
	dim = cmp.Or(a.KeyInput, dim) // the blocks' width
	c.MaxDistance = cmp.Or(c.MaxDistance, 128)
	d := &disentangled{config: c, name: p.scopeName("disentangled positions")}
	err := cmp.Or(positive(d.name, size{"Dim", dim}), c.buckets().Check(d.name), ops.CheckRate(d.name, c.Dropout))
	if err == nil && a.Latent != nil {
		err = fmt.Errorf("%s: attention with Latent can't have them: choose other positions, such as Rotary", d.name)
	}
	if err == nil && c.NoKeys && c.NoQueries {
		err = fmt.Errorf("%s: NoKeys and NoQueries leave nothing: use NoPositions for that", d.name)
	}
	if err != nil {
		return nil, err
	}
	if c.Norm != nil {
		if d.norm, err = NewNorm(p.Scope("norm"), dim, *c.Norm); err != nil {
			return nil, err
		}
	}
	d.weight, err = p.New("weight", c.Init.or(Normal(1/math.Sqrt(float64(dim)))), memory.Product(2, c.buckets().Span()), dim)
	return d, err
}

func (c Disentangled) buckets() ops.DistanceBuckets {
	return ops.DistanceBuckets{Buckets: c.Buckets, MaxDistance: c.MaxDistance}
}

type disentangled struct {
	NoPositions
	config Disentangled
	weight *Param // (R, D)
	norm   *Norm
	name   string
}

// Score sets the mask's Distances.
func (d *disentangled) Score(b *Build, q, _, _ *G.Node, m Mask) (Mask, error) {
	if m.Distances != nil {
		return m, fmt.Errorf("%s: the mask can't have Distances, because the model sets them", d.name)
	}
	w, err := b.Bind(q.Graph(), d.weight)
	if err == nil {
		w, err = chain(b, w, d.norm, Dropout{d.config.Dropout})
	}
	if err != nil {
		return m, err
	}
	m.Distances = &Distances{Buckets: d.config.Buckets, MaxDistance: d.config.MaxDistance, bare: true}
	if !d.config.NoKeys {
		m.Distances.Keys = w
	}
	if !d.config.NoQueries {
		m.Distances.Queries = w
	}
	return m, nil
}
