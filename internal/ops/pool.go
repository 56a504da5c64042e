package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/kernel"
)

// A Pooling is the index in Poolings of a way to make one vector of a sequence.
type Pooling int

const (
	MeanPooling Pooling = iota
	FirstPooling
	LastPooling
)

// Poolings are the ways to pool. Each returns the rows that the vector is the mean of, for a sequence of n rows.
var Poolings = choices.Table[func(n int) kernel.Span]{
	{Name: "mean", About: "the mean of all positions", Value: func(n int) kernel.Span { return kernel.Span{End: n} }},
	{Name: "first", About: "the first position", Value: func(n int) kernel.Span { return kernel.Span{End: min(n, 1)} }},
	{Name: "last", About: "the last position", Value: func(n int) kernel.Span { return kernel.Span{First: max(n-1, 0), End: n} }},
}

// Known reports whether there is such a Pooling. They are numbered from 0.
func (p Pooling) Known() bool { return p >= 0 && int(p) < len(Poolings) }

// Pool returns one vector per sequence: the mean of its valid positions, or its first or last valid position. For x of
// shape (B, T, D) or (T, D), the result has shape (B, D) or (1, D). Sequence b has lengths[b] valid positions, or T if
// lengths is nil. The other positions may hold any values, and their gradient is zero. A sequence of length 0 gives
// zeros.
func Pool(e *Env, x, lengths *G.Node, p Pooling) (*G.Node, error) {
	const name = "pool"
	s, err := sequencesOf(name, x)
	if err != nil {
		return nil, err
	}
	if !p.Known() {
		return nil, fmt.Errorf("%s: there is no pooling %d", name, int(p))
	}
	if lengths != nil {
		if lengths.Dtype() != tensor.Int {
			return nil, fmt.Errorf("%s: the lengths must be int, got %v", name, lengths.Dtype())
		}
		if err := hasShape(name, "the lengths", lengths, s[0]); err != nil {
			return nil, err
		}
	}
	return ByDtype(x, pool[float32], pool[float64])(e, x, lengths, s, p)
}

func pool[F kernel.Float](e *Env, x, lengths *G.Node, s tensor.Shape, p Pooling) (*G.Node, error) {
	batch, rows, width := s[0], s[1], s[2]
	spans := make([]kernel.Span, batch)
	// find sets spans. The second input, if there is one, holds the lengths.
	find := func(values []G.Value) {
		for b := range spans {
			spans[b] = Poolings[p].Value(rows)
		}
		for b, n := range optional[int](values, 1, batch) {
			if n < 0 || n > rows {
				fail("length %d of batch element %d isn't between 0 and the %d positions", n, b, rows)
			}
			spans[b] = Poolings[p].Value(n)
		}
	}
	attrs := fmt.Sprintf("%v(%d,%t)", x.Shape(), p, lengths != nil)
	o := newOp("pool"+attrs, tensor.Shape{batch, width}, func(out []F, values []G.Value) {
		x := elements[F](values[0], batch*rows*width)
		find(values)
		kernel.MeanRows(e.Cores, out, x, spans, rows, width)
	})
	shape := x.Shape()
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp("pool.dx"+attrs, shape, func(dx []F, values []G.Value) {
			g := elements[F](values[0], batch*width)
			find(values)
			kernel.MeanRowsGrad(dx, g, spans, rows, width)
		}), g, lengths))
	}
	return e.apply(o, x, lengths)
}
