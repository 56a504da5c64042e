package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Pool returns the mean over the first positions of every sequence. For x of shape (B, T, D) or (T, D), the result has
// shape (B, D) or (1, D). Sequence b has lengths[b] valid positions, or T if lengths is nil. The mean includes at most
// the first limit of them. The other positions may hold any values, and their gradient is zero. The mean of a sequence
// of length 0 is zero.
func Pool(e *Env, x, lengths *G.Node, limit int) (*G.Node, error) {
	const name = "pool"
	s, err := sequencesOf(name, x)
	if err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, fmt.Errorf("%s: the number of positions must be at least 1, got %d", name, limit)
	}
	if lengths != nil {
		if lengths.Dtype() != tensor.Int {
			return nil, fmt.Errorf("%s: the lengths must be int, got %v", name, lengths.Dtype())
		}
		if err := hasShape(name, "the lengths", lengths, s[0]); err != nil {
			return nil, err
		}
	}
	return byDtype(x, pool[float32], pool[float64])(e, x, lengths, s, limit)
}

func pool[F kernel.Float](e *Env, x, lengths *G.Node, s tensor.Shape, limit int) (*G.Node, error) {
	batch, rows, width := s[0], s[1], s[2]
	counts := make([]int, batch)
	// count sets counts. The second input, if there is one, holds the lengths.
	count := func(values []G.Value) {
		for b := range counts {
			counts[b] = min(rows, limit)
		}
		for b, n := range optional[int](values, 1, batch) {
			if n < 0 || n > rows {
				fail("length %d of batch element %d isn't between 0 and the %d positions", n, b, rows)
			}
			counts[b] = min(n, limit)
		}
	}
	attrs := fmt.Sprintf("%v(%d,%t)", x.Shape(), limit, lengths != nil)
	o := newOp("pool"+attrs, tensor.Shape{batch, width}, func(out []F, values []G.Value) {
		x := elements[F](values[0], batch*rows*width)
		count(values)
		kernel.MeanRows(e.Cores, out, x, counts, rows, width)
	})
	shape := x.Shape()
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp("pool.dx"+attrs, shape, func(dx []F, values []G.Value) {
			g := elements[F](values[0], batch*width)
			count(values)
			kernel.MeanRowsGrad(dx, g, counts, rows, width)
		}), g, lengths))
	}
	return e.apply(o, x, lengths)
}
