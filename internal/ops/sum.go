package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Sum returns the sum of all elements of x as a scalar. x may have any rank.
func Sum(e *Env, x *G.Node) (*G.Node, error) {
	return WeightedSum(e, x, slices.Repeat([]float64{1}, volume(x.Shape())), "ones")
}

// WeightedSum returns Σ weights[i]·x[i] over all elements of x as a scalar. x may have any rank. The label stands for
// the weights: different weights need different labels.
func WeightedSum(e *Env, x *G.Node, weights []float64, label string) (*G.Node, error) {
	if err := CheckFloat("sum", "the input", x); err != nil {
		return nil, err
	}
	return ByDtype(x, weightedSum[float32], weightedSum[float64])(e, x, weights, label)
}

func weightedSum[F kernel.Float](e *Env, x *G.Node, weights []float64, label string) (*G.Node, error) {
	shape := x.Shape()
	o := newScalar(fmt.Sprintf("sum%v(%s)", shape, label), func(values []G.Value) F {
		var total float64
		for i, v := range elements[F](values[0], len(weights)) {
			total += weights[i] * float64(v)
		}
		return F(total)
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		if len(shape) == 0 {
			return one(weightedSum[F](e, g, weights, label)) // a scalar, not a tensor
		}
		return one(e.apply(newOp(fmt.Sprintf("sum.dx%v(%s)", shape, label), shape, func(dx []F, values []G.Value) {
			g := elements[F](values[0], 1)
			for i := range dx {
				dx[i] = F(weights[i]) * g[0]
			}
		}), g))
	}
	return e.apply(o, x)
}
