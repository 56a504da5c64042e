package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Dropout sets each element of x to zero with probability p and multiplies the others by 1/(1−p) (Srivastava et al.,
// 2014). Which elements those are is decided by the seed, the stream (which tells a graph's dropouts apart) and the
// number of the run, counted from firstRun.
func Dropout(x *G.Node, p float64, seed, stream, firstRun uint64) (*G.Node, error) {
	const name = "dropout"
	if err := floatNode(name, "the input", x); err != nil {
		return nil, err
	}
	if !(p >= 0 && p < 1) {
		return nil, fmt.Errorf("%s: the probability must be at least 0 and below 1, got %v", name, p)
	}
	if x.Dtype() == tensor.Float32 {
		return dropout[float32](x, p, seed, stream, firstRun)
	}
	return dropout[float64](x, p, seed, stream, firstRun)
}

func dropout[F kernel.Float](x *G.Node, p float64, seed, stream, firstRun uint64) (*G.Node, error) {
	shape := x.Shape()
	keep := make([]F, shape.TotalSize()) // of the current run: 0 or 1/(1−p)
	run := firstRun
	attrs := fmt.Sprintf("%v(%v,%d,%d)", shape, p, seed, stream)
	o := newOp("dropout"+attrs, shape, func(y []F, in []G.Value) error {
		x, err := elements[F](in[0], len(y))
		if err != nil {
			return err
		}
		kernel.DropoutMask(keep, p, seed, stream, run)
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
