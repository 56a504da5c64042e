package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Normalize divides each vector of the last axis by its length, √Σx². A vector of zeros stays zero, and its gradient is
// zero.
func Normalize(e *Env, x *G.Node) (*G.Node, error) {
	const name = "normalize"
	if err := CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	if x.Dims() < 1 {
		return nil, fmt.Errorf("%s: the input must have at least one axis, got a scalar", name)
	}
	return ByDtype(x, normalize[float32], normalize[float64])(e, x)
}

func normalize[F kernel.Float](e *Env, x *G.Node) (*G.Node, error) {
	shape := x.Shape()
	_, width := rows(shape)
	o := newOp(fmt.Sprintf("normalize%v", shape), shape, func(y []F, values []G.Value) {
		kernel.Normalize(e.Cores, y, elements[F](values[0], len(y)), width)
	})
	o.wrt, o.grad = 1, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp(fmt.Sprintf("normalize.dx%v", shape), shape, func(dx []F, values []G.Value) {
			x, g := read2[F](values, len(dx), len(dx))
			kernel.NormalizeGrad(e.Cores, dx, x, g, width)
		}), inputs[0], g))
	}
	return e.apply(o, x)
}
