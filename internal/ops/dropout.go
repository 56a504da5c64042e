package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// drop holds the settings of one dropout. The seed, the stream and the number of the run decide which elements it
// drops. The zero drop drops nothing.
type drop struct {
	p      float64 // probability
	seed   uint64
	stream uint64 // distinguishes the dropouts of a graph
}

// runs counts the runs of an op.
type runs struct{ from, since uint64 }

// next returns the number of the new run: the Env's number if this has changed, otherwise the last number plus 1.
func (r *runs) next(e *Env) uint64 {
	var from uint64
	if e.Runs != nil {
		from = *e.Runs
	}
	if from != r.from {
		*r = runs{from: from}
	}
	r.since++
	return r.from + r.since - 1
}

// drop returns the settings of the graph's next dropout.
func (e *Env) drop(p float64) drop {
	if p == 0 || !e.Training {
		return drop{}
	}
	e.dropouts++
	return drop{p, e.Seed, e.dropouts}
}

// Dropout sets elements of x to zero, each with probability p, and multiplies the others by 1/(1−p) (Srivastava et al.,
// 2014). The Env's seed, the number of this dropout in the graph and the number of the run decide which elements are
// set to zero. If p is 0 or e.Training is false, Dropout returns x itself.
func Dropout(e *Env, x *G.Node, p float64) (*G.Node, error) {
	const name = "dropout"
	if err := cmp.Or(CheckFloat(name, "the input", x), CheckRate(name, p), e.Enter(x.Graph())); err != nil {
		return nil, err
	}
	d := e.drop(p)
	if d.p == 0 {
		return x, nil
	}
	return ByDtype(x, dropout[float32], dropout[float64])(e, x, d)
}

func dropout[F kernel.Float](e *Env, x *G.Node, d drop) (*G.Node, error) {
	shape := x.Shape()
	keep := newBuffer[F](shape) // the factor of each element in the current run: 0 or 1/(1−p)
	var run runs
	attrs := fmt.Sprintf("%v%v", shape, d)
	o := newOp("dropout"+attrs, shape, func(y []F, values []G.Value) {
		x := elements[F](values[0], len(y))
		keep := keep.slice()
		kernel.DropoutMask(e.Cores, keep, d.p, d.seed, d.stream, run.next(e))
		kernel.SkipMul(e.Cores, y, x, keep)
	})
	o.fills = append(o.fills, &keep.lease)
	o.wrt, o.grad = 1, func(_ G.Nodes, out, g *G.Node) (G.Nodes, error) {
		dx := newOp("dropout.dx"+attrs, shape, func(dx []F, values []G.Value) {
			g := elements[F](values[0], len(dx))
			kernel.SkipMul(e.Cores, dx, g, keep.data)
		})
		dx.saved, dx.after = []*lease{&keep.lease}, 1
		// The output is among the inputs, so that it runs first: it fills keep.
		return one(e.apply(dx, g, out))
	}
	return e.apply(o, x)
}
