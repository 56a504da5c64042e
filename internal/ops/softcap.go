package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Softcap returns c·tanh(x/c) for every element: nearly x for small x, and always from −c to c (Gemma 2, 2024).
func Softcap(e *Env, x *G.Node, c float64) (*G.Node, error) {
	const name = "softcap"
	if err := CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	if !(c > 0) || math.IsInf(c, 1) {
		return nil, fmt.Errorf("%s: the cap must be above 0 and finite, got %v", name, c)
	}
	return byDtype(x, softcap[float32], softcap[float64])(e, x, c)
}

func softcap[F kernel.Float](e *Env, x *G.Node, c float64) (*G.Node, error) {
	shape := x.Shape()
	attrs := fmt.Sprintf("%v(%v)", shape, c)
	o := newOp("softcap"+attrs, shape, func(y []F, values []G.Value) {
		x := elements[F](values[0], len(y))
		kernel.Softcap(e.Cores, y, x, F(c))
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, y, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp("softcap.dx"+attrs, shape, func(dx []F, values []G.Value) {
			y, g := read2[F](values, len(dx), len(dx))
			kernel.SoftcapGrad(e.Cores, dx, y, g, F(c))
		}), y, g))
	}
	return e.apply(o, x)
}
