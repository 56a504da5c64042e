package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Append concatenates past and x along the sequence axis: (…, P, K) and (…, S, K) give (…, P+S, K).
func Append(e *Env, past, x *G.Node) (*G.Node, error) {
	const name = "append"
	if err := sameDtype(name, "the new vectors", x, "the past", past); err != nil {
		return nil, err
	}
	ps, xs := past.Shape(), x.Shape()
	r := len(ps)
	if r < 2 || len(xs) != r || !slices.Equal(ps[:r-2], xs[:r-2]) || ps[r-1] != xs[r-1] {
		return nil, fmt.Errorf("%s: the past (…, P, K) and the new vectors (…, S, K) may differ only in P and S, got %v and %v", name, ps, xs)
	}
	return ByDtype(x, appendOf[float32], appendOf[float64])(e, past, x)
}

func appendOf[F kernel.Float](e *Env, past, x *G.Node) (*G.Node, error) {
	ps, xs := past.Shape(), x.Shape()
	r := len(ps)
	shape := ps.Clone()
	shape[r-2] += xs[r-2]
	n, before, after := volume(ps[:r-2]), ps[r-2]*ps[r-1], xs[r-2]*xs[r-1]
	attrs := fmt.Sprintf("%v%v", ps, xs)
	o := newOp("append"+attrs, shape, func(out []F, values []G.Value) {
		past, x := read2[F](values, n*before, n*after)
		for i := range n {
			copy(out[i*(before+after):], past[i*before:][:before])
			copy(out[i*(before+after)+before:], x[i*after:][:after])
		}
	})
	o.wrt, o.grad = 2, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return joint(e, "append.grad"+attrs, o.DiffWRT(2), []tensor.Shape{ps, xs}, []*G.Node{g}, nil, nil, func(grads [][]F, values []G.Value) {
			g := elements[F](values[0], n*(before+after))
			for i := range n {
				copy(grads[0][i*before:][:before], g[i*(before+after):])
				copy(grads[1][i*after:][:after], g[i*(before+after)+before:])
			}
		})
	}
	return e.apply(o, past, x)
}
