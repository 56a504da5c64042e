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
	return elementwise(e, "normalize", fmt.Sprint(shape), x, unary[F]{
		forward:  func(cores int, y, x []F) { kernel.Normalize(cores, y, x, width) },
		backward: func(cores int, dx, x, g []F) { kernel.NormalizeGrad(cores, dx, x, g, width) },
	}, false)
}
