package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// LayerNorm normalises the last axis of x, of shape (…, D), to mean 0 and variance 1, then multiplies by gamma and adds
// beta (Ba, Kiros and Hinton, 2016). It divides by the square root of the biased variance plus eps. gamma and beta have
// shape (D); beta may be nil.
func LayerNorm(e *Env, x, gamma, beta *G.Node, eps float64) (*G.Node, error) {
	const name = "layer norm"
	if x.Dims() < 1 {
		return nil, fmt.Errorf("%s: the input must have shape (…, D), got a scalar", name)
	}
	for _, p := range []struct {
		what string
		n    *G.Node
	}{{"gamma", gamma}, {"beta", beta}} {
		if p.n == nil { // no beta
			continue
		}
		if err := cmp.Or(sameDtype(name, p.what, p.n, "the input", x), hasShape(name, p.what, p.n, x.Shape()[x.Dims()-1])); err != nil {
			return nil, err
		}
	}
	return ByDtype(x, layerNorm[float32], layerNorm[float64])(e, x, gamma, beta, eps)
}

func layerNorm[F kernel.Float](e *Env, x, gamma, beta *G.Node, eps float64) (*G.Node, error) {
	shape := x.Shape()
	n, width := rows(shape)
	shapes := []tensor.Shape{shape, gamma.Shape()}
	if beta != nil {
		shapes = append(shapes, beta.Shape())
	}
	attrs := fmt.Sprintf("%v(%v,%t)", shape, eps, beta != nil)
	o := newOp("layer norm"+attrs, shape, func(y []F, values []G.Value) {
		x, gamma := read2[F](values, len(y), width)
		kernel.LayerNorm(e.Cores, y, x, gamma, optional[F](values, 2, width), F(eps))
	})
	o.wrt, o.grad = len(shapes), func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return joint(e, "layer norm.grad"+attrs, o.DiffWRT(len(shapes)), shapes, []*G.Node{inputs[0], inputs[1], g, o.rest}, nil, nil, func(out [][]F, values []G.Value) {
			x, gamma, g := read3[F](values, n*width, width, n*width)
			var dbeta []F
			if len(out) == 3 {
				dbeta = out[2]
			}
			kernel.LayerNormGrad(e.Cores, out[0], out[1], dbeta, x, gamma, g, optional[F](values, 3, n*width), F(eps))
		})
	}
	o.adds = true
	return e.apply(o, x, gamma, beta)
}
