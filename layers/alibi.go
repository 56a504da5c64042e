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

// ALiBi lowers the scores of self-attention by distance (Press et al., 2021, Attention with Linear Biases): the further
// a key is from the query, the more,
//
//	bias = −m_h·|p − j|
//
// for a query at place p, key j and the slope m_h of head h. In causal attention, where no key comes after its query,
// that is the paper's bias; otherwise it looks as far ahead as it looks back. Places are those of the mask: they are
// counted along the row, whatever the Build's Positions. It has no parameters and no longest sequence, takes no memory,
// and models trained with it read longer sequences than they were trained on.
type ALiBi struct{}

// New returns Positions that set the Slopes of masks to those of a's heads. A mask that has Slopes of its own is an
// error.
func (c ALiBi) New(_ *Params, _ int, a AttentionConfig) (Positions, error) {
	slopes, err := c.Slopes(max(a.Heads, 1))
	return &alibi{slopes: slopes}, err
}

// Slopes returns the slopes of so many heads, for a Mask, steepest first where their number is a power of two:
// 2^(−8/H), 2^(−16/H), …, 2^−8. Otherwise they are, as in the paper's code, those of the largest power of two below,
// and then every other one of the power of two above. It is an error if there is no head or there are more than
// 1,048,576.
func (ALiBi) Slopes(heads int) ([]float64, error) {
	if err := positive("alibi", size{"the number of heads", heads}); err != nil {
		return nil, err
	}
	if heads > mostHeads {
		return nil, fmt.Errorf("alibi: slopes of %d heads take %s of memory: there may be at most %d heads", heads, text.Bytes(memory.Product(heads, 8)), mostHeads)
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

// mostHeads is more than a model has, and takes 8 MiB of slopes.
const mostHeads = 1 << 20

type alibi struct {
	None
	slopes []float64
}

// Score sets the mask's Slopes.
func (a *alibi) Score(_ *Build, _, _, _ *G.Node, m Mask) (Mask, error) {
	if m.Slopes != nil {
		return m, errors.New("the mask can't have Slopes, as the model has its own, those of ALiBi")
	}
	m.Slopes = a.slopes
	return m, nil
}
