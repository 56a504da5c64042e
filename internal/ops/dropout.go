package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Drop says what dropout drops: each element with a probability. Which elements those are is decided by the seed, the
// stream and the number of the run. The zero Drop drops nothing.
type Drop struct {
	P        float64 // probability
	Seed     uint64
	Stream   uint64 // tells a graph's dropouts apart
	FirstRun uint64 // runs are counted from here
}

// Dropout sets elements of x to zero and multiplies the others by 1/(1−P) (Srivastava et al., 2014).
func Dropout(x *G.Node, d Drop) (*G.Node, error) {
	const name = "dropout"
	if err := floatNode(name, "the input", x); err != nil {
		return nil, err
	}
	if !(d.P >= 0 && d.P < 1) {
		return nil, fmt.Errorf("%s: the probability must be at least 0 and below 1, got %v", name, d.P)
	}
	if x.Dtype() == tensor.Float32 {
		return dropout[float32](x, d)
	}
	return dropout[float64](x, d)
}

func dropout[F kernel.Float](x *G.Node, d Drop) (*G.Node, error) {
	shape := x.Shape()
	keep := make([]F, shape.TotalSize()) // of the current run: 0 or 1/(1−p)
	run := d.FirstRun
	attrs := fmt.Sprintf("%v%v", shape, d)
	o := newOp("dropout"+attrs, shape, func(y []F, in []G.Value) error {
		x, err := elements[F](in[0], len(y))
		if err != nil {
			return err
		}
		kernel.DropoutMask(keep, d.P, d.Seed, d.Stream, run)
		run++
		kernel.SkipMul(y, x, keep)
		return nil
	})
	o.diff = []bool{true}
	o.grad = func(_ G.Nodes, out, g *G.Node) (G.Nodes, error) {
		dx := newOp("dropout.dx"+attrs, shape, func(dx []F, in []G.Value) error {
			g, err := elements[F](in[0], len(dx))
			if err != nil {
				return err
			}
			kernel.SkipMul(dx, g, keep)
			return nil
		})
		// The output is an input so that the mask is this run's.
		n, err := dx.apply(g, out)
		return G.Nodes{n}, err
	}
	return o.apply(x)
}
