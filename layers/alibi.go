package layers

import (
	"fmt"
	"math"
	"math/bits"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ALiBi tells positions apart by what it adds to the scores (Press et al., 2021, Attention with Linear Biases): the
// further a key is from the query, the less,
//
//	bias = −m_h·|i + Offset − j|
//
// for query i, key j and the slope m_h of head h. In causal attention, where no key comes after its query, that is the
// paper's bias; otherwise it looks as far ahead as it looks back. It has no parameters and no longest sequence, and
// models trained with it read longer sequences than they were trained on.
//
// A model has it with ModelConfig.ALiBi, and attention with its Slopes in a Mask, where it takes no memory. Bias is the
// same as a node.
type ALiBi struct {
	Heads int // number of heads, H

	// Offset is the position of the first query among the keys of Bias: the number of keys before it, where keys are
	// cached. The slopes of a Mask have that of the Mask.
	Offset int
}

// Slopes are the slopes of the heads, steepest first where their number is a power of two: 2^(−8/H), 2^(−16/H), …, 2^−8.
// Otherwise they are, as in the paper's code, those of the largest power of two below, and then every other one of the
// power of two above. It is an error if there is no head.
func (a ALiBi) Slopes() ([]float64, error) {
	if err := positive("alibi", size{"Heads", a.Heads}); err != nil {
		return nil, err
	}
	below := 1 << (bits.Len(uint(a.Heads)) - 1)
	slopes := make([]float64, a.Heads)
	for h := range slopes {
		if h < below {
			slopes[h] = math.Exp2(-8 * float64(h+1) / float64(below))
		} else {
			slopes[h] = math.Exp2(-8 * float64(2*(h-below)+1) / float64(2*below))
		}
	}
	return slopes, nil
}

// Bias is the bias for T queries and S keys: a node of shape (H, T, S) and the given dtype, for Mask.Bias. It isn't
// learned. Calls that ask for the same in one graph share one node.
func (a ALiBi) Bias(g *G.ExprGraph, dtype tensor.Dtype, queries, keys int) (*G.Node, error) {
	const name = "alibi"
	slopes, err := a.Slopes()
	if err != nil {
		return nil, err
	}
	if err := positive(name, size{"the number of queries", queries}, size{"the number of keys", keys}); err != nil {
		return nil, err
	}
	if dtype != tensor.Float32 && dtype != tensor.Float64 {
		return nil, fmt.Errorf("%s: the bias must be float32 or float64, got %v", name, dtype)
	}
	if g == nil {
		return nil, fmt.Errorf("%s: the graph is nil", name)
	}
	bias := tensor.New(tensor.Of(dtype), tensor.WithShape(a.Heads, queries, keys))
	if dtype == tensor.Float32 {
		alibi(bias.Float32s(), slopes, a.Offset, queries, keys)
	} else {
		alibi(bias.Float64s(), slopes, a.Offset, queries, keys)
	}
	n, err := constant(g, fmt.Sprintf("alibi%v from %d, %v", bias.Shape(), a.Offset, dtype), bias)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// alibi fills a bias of shape (H, T, S).
func alibi[F float32 | float64](bias []F, slopes []float64, offset, queries, keys int) {
	for h, m := range slopes {
		for i := range queries {
			row := bias[(h*queries+i)*keys:][:keys]
			for j := range row {
				row[j] = F(0 - m*math.Abs(float64(i+offset-j))) // from 0, so that it is never −0
			}
		}
	}
}

// constant is the graph's input node of that name and value: the one it has, or a new one. The name must tell all that the
// value depends on: Gorgonia takes two nodes of one name and type for one. (It tells its own constants apart by their
// printed form, which leaves out the middle of a large one.)
func constant(g *G.ExprGraph, name string, value *tensor.Dense) (*G.Node, error) {
	if nodes := g.ByName(name); len(nodes) > 0 {
		n := nodes[0]
		if v, ok := n.Value().(*tensor.Dense); ok && v.Eq(value) {
			return n, nil
		}
		return nil, fmt.Errorf("the graph has another node named %q, of shape %v: two of one name would be merged, so rename it", name, n.Shape())
	}
	return G.NewTensor(g, value.Dtype(), value.Dims(), G.WithShape(value.Shape()...), G.WithName(name), G.WithValue(value)), nil
}
