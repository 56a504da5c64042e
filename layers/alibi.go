package layers

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/text"
)

// ALiBi lowers the scores of self-attention in proportion to the distance between query and key (Press et al., 2021,
// Attention with Linear Biases):
//
//	bias = −m_h·|p − j|
//
// for a query at position p, a key at position j and the slope m_h of head h. In causal attention this is the paper's
// bias; otherwise keys after the query are treated like keys before it. ALiBi uses the positions of the mask, which
// count along the row, and ignores the Build's Positions. It has no parameters and no limit on the length, and needs no
// memory. A model with ALiBi can read longer sequences than in training.
type ALiBi struct{}

// New returns Positions whose Score sets the mask's Slopes, one for each head. Score returns an error if the mask
// already has Slopes.
func (c ALiBi) New(_ *Params, _ int, a AttentionConfig) (Positions, error) {
	slopes, err := c.Slopes(max(a.Heads, 1))
	return &alibi{slopes: slopes}, err
}

// Slopes returns one slope per head, for the Slopes of a Mask. For H heads, where H is a power of two, the slopes are
// 2^(−8/H), 2^(−16/H), …, 2^−8. Otherwise, as in the paper's code, they are the slopes for the next lower power of two,
// followed by every other slope for the next higher power. Slopes returns an error if the number of heads is below 1 or
// above 1,048,576.
func (ALiBi) Slopes(heads int) ([]float64, error) {
	if err := positive("alibi", size{"the number of heads", heads}); err != nil {
		return nil, err
	}
	if heads > mostHeads {
		return nil, fmt.Errorf("alibi: slopes for %d heads need %s of memory: use at most %d heads", heads, text.Bytes(memory.Product(heads, 8)), mostHeads)
	}
	below := 1 << (bits.Len(uint(heads)) - 1)
	slopes := make([]float64, heads)
	for h := range slopes {
		if h < below {
			slopes[h] = math.Exp2(-8 * float64(h+1) / float64(below))
		} else {
			slopes[h] = math.Exp2(-8 * float64(2*(h-below)+1) / float64(2*below))
		}
	}
	return slopes, nil
}

// mostHeads is the largest number of heads for which Slopes returns slopes; they take 8 MiB. No real model has so many
// heads.
const mostHeads = 1 << 20

type alibi struct {
	NoPositions
	slopes []float64
}

// Score sets the mask's Slopes.
func (a *alibi) Score(_ *Build, _, _, _ *G.Node, m Mask) (Mask, error) {
	if m.Slopes != nil {
		return m, errors.New("the mask can't have Slopes, because ALiBi sets them")
	}
	m.Slopes = a.slopes
	return m, nil
}
