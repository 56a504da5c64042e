package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// RMSNorm divides each row of D elements by √(mean(x²) + eps) over the row, and multiplies it by gamma, of shape (D)
// (Zhang and Sennrich, 2019). x has shape (…, D), or (…, H·D) with H rows side by side. Each row is normalised
// separately.
func RMSNorm(e *Env, x, gamma *G.Node, eps float64) (*G.Node, error) {
	const name = "rms norm"
	if err := sameDtype(name, "gamma", gamma, "the input", x); err != nil {
		return nil, err
	}
	xs, gs := x.Shape(), gamma.Shape()
	if len(xs) < 1 || len(gs) != 1 || gs[0] < 1 || xs[len(xs)-1]%gs[0] != 0 {
		return nil, fmt.Errorf("%s: the input must have shape (…, H·D) and gamma (D), got %v and %v", name, xs, gs)
	}
	return ByDtype(x, rmsNorm[float32], rmsNorm[float64])(e, x, gamma, eps)
}

func rmsNorm[F kernel.Float](e *Env, x, gamma *G.Node, eps float64) (*G.Node, error) {
	shape, width := x.Shape(), gamma.Shape()[0]
	size := shape.TotalSize()
	attrs := fmt.Sprintf("%v(%d,%v)", shape, width, eps)
	o := newOp("rms norm"+attrs, shape, func(y []F, values []G.Value) {
		x, gamma := read2[F](values, size, width)
		kernel.RMSNorm(e.Cores, y, x, gamma, eps)
	})
	o.wrt, o.grad = 2, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return joint(e, "rms norm.grad"+attrs, o.DiffWRT(2), []tensor.Shape{shape, {width}}, []*G.Node{inputs[0], inputs[1], g, o.rest}, nil, nil, func(out [][]F, values []G.Value) {
			x, gamma, g := read3[F](values, size, width, size)
			kernel.RMSNormGrad(e.Cores, out[0], out[1], x, gamma, g, optional[F](values, 3, size), eps)
		})
	}
	o.adds = true
	return e.apply(o, x, gamma)
}
