package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Scale returns x·by. The rank of x must be at least 1.
func Scale(e *Env, x *G.Node, by float64) (*G.Node, error) {
	if err := CheckFloat("scale", "the input", x); err != nil {
		return nil, err
	}
	return ByDtype(x, scale[float32], scale[float64])(e, x, by)
}

func scale[F kernel.Float](e *Env, x *G.Node, by float64) (*G.Node, error) {
	shape := x.Shape()
	o := newOp(fmt.Sprintf("scale%v(%v)", shape, by), shape, func(y []F, values []G.Value) {
		x := elements[F](values[0], len(y))
		for i, v := range x {
			y[i] = v * F(by)
		}
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) { return one(scale[F](e, g, by)) }
	return e.apply(o, x)
}
