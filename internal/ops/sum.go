package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Sum returns the sum of all elements of x as a scalar. x may have any rank.
func Sum(e *Env, x *G.Node) (*G.Node, error) {
	if err := CheckFloat("sum", "the input", x); err != nil {
		return nil, err
	}
	return byDtype(x, sum[float32], sum[float64])(e, x)
}

func sum[F kernel.Float](e *Env, x *G.Node) (*G.Node, error) {
	shape := x.Shape()
	o := &op{
		name: fmt.Sprintf("sum%v", shape), shape: tensor.ScalarShape(), out: dtypeOf[F](),
		run: func(values []G.Value) G.Value {
			x := elements[F](values[0], shape.TotalSize())
			var total float64
			for _, v := range x {
				total += float64(v)
			}
			return scalar(F(total))
		},
	}
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp(fmt.Sprintf("sum.dx%v", shape), shape, func(dx []F, values []G.Value) {
			g := elements[F](values[0], 1)
			for i := range dx {
				dx[i] = g[0]
			}
		}), g))
	}
	return e.apply(o, x)
}
