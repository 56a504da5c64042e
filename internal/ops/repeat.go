package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// RepeatHeads turns (B, G, S, K) into (B, G·times, S, K): it repeats each head the given number of times in a row.
// Grouped-query attention uses it for keys and values (Ainslie et al., GQA, 2023).
func RepeatHeads(e *Env, x *G.Node, times int) (*G.Node, error) {
	const name = "repeat heads"
	if err := CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	if s := x.Shape(); len(s) != 4 || times < 1 {
		return nil, fmt.Errorf("%s: the input must have shape (B, G, S, K), and times must be at least 1, got shape %v and %d times", name, s, times)
	}
	if times == 1 {
		return x, nil
	}
	return ByDtype(x, repeatHeads[float32], repeatHeads[float64])(e, x, times)
}

func repeatHeads[F kernel.Float](e *Env, x *G.Node, times int) (*G.Node, error) {
	from := x.Shape()
	repeated := from.Clone()
	repeated[1] *= times
	block := from[2] * from[3]
	attrs := fmt.Sprintf("%v%v", from, repeated)
	o := newOp("repeat heads"+attrs, repeated, func(y []F, values []G.Value) {
		x := elements[F](values[0], from.TotalSize())
		kernel.Repeat(e.Cores, y, x, block, times)
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp("repeat heads.dx"+attrs, from, func(dx []F, values []G.Value) {
			g := elements[F](values[0], repeated.TotalSize())
			kernel.SumRepeats(e.Cores, dx, g, block, times)
		}), g))
	}
	return e.apply(o, x)
}
