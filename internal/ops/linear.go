package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Linear is y = x·Wᵀ + b for x of shape (…, I), W of shape (O, I) and b of shape (O), or nil for none; y has shape
// (…, O). Any number of leading axes will do.
func Linear(x, w, b *G.Node) (*G.Node, error) {
	const name = "linear"
	if err := floatNode(name, "the input", x); err != nil {
		return nil, err
	}
	if err := sameDtype(name, "the weight", w, "the input", x); err != nil {
		return nil, err
	}
	if x.Dims() < 1 || w.Dims() != 2 || x.Shape()[x.Dims()-1] != w.Shape()[1] {
		return nil, fmt.Errorf("%s: the input must have shape (…, I) and the weight (O, I), got %v and %v", name, x.Shape(), w.Shape())
	}
	if b != nil {
		if err := sameDtype(name, "the bias", b, "the input", x); err != nil {
			return nil, err
		}
		if err := hasShape(name, "the bias", b, w.Shape()[0]); err != nil {
			return nil, err
		}
	}
	if x.Dtype() == tensor.Float32 {
		return linear[float32](x, w, b)
	}
	return linear[float64](x, w, b)
}

func linear[F kernel.Float](x, w, b *G.Node) (*G.Node, error) {
	n, width := rows(x.Shape())
	out := w.Shape()[0]
	shape := x.Shape()
	shape[len(shape)-1] = out

	in := G.Nodes{x, w}
	diff := []bool{true, true}
	if b != nil {
		in, diff = append(in, b), append(diff, true)
	}
	o := newOp(fmt.Sprintf("linear%v", shape), shape, func(y []F, in []G.Value) error {
		x, w, err := read2[F](in, n*width, out*width)
		if err != nil {
			return err
		}
		var bias []F
		if len(in) == 3 {
			if bias, err = elements[F](in[2], out); err != nil {
				return err
			}
		}
		kernel.Gemm(false, true, n, out, width, 1, x, width, w, width, 0, y, out) // (n, I) x (O, I)ᵀ -> (n, O)
		if bias != nil {
			kernel.AddRow(y, bias)
		}
		return nil
	})
	o.diff = diff
	o.grad = func(in G.Nodes, _, g *G.Node) (G.Nodes, error) {
		dx := newOp(fmt.Sprintf("linear.dx%v", x.Shape()), x.Shape(), func(dx []F, in []G.Value) error {
			g, w, err := read2[F](in, n*out, out*width)
			if err != nil {
				return err
			}
			kernel.Gemm(false, false, n, width, out, 1, g, out, w, width, 0, dx, width) // (n, O) x (O, I) -> (n, I)
			return nil
		})
		dw := newOp(fmt.Sprintf("linear.dw%v", w.Shape()), w.Shape(), func(dw []F, in []G.Value) error {
			g, x, err := read2[F](in, n*out, n*width)
			if err != nil {
				return err
			}
			kernel.SkipGemm(true, false, out, width, n, 1, g, out, x, width, dw, width) // (n, O)ᵀ x (n, I) -> (O, I)
			return nil
		})
		nx, err := dx.apply(g, in[1])
		if err != nil {
			return nil, err
		}
		nw, err := dw.apply(g, in[0])
		if err != nil || b == nil {
			return G.Nodes{nx, nw}, err
		}
		db := newOp(fmt.Sprintf("linear.db(%d)", out), tensor.Shape{out}, func(db []F, in []G.Value) error {
			g, err := elements[F](in[0], n*out)
			if err != nil {
				return err
			}
			kernel.SumRows(db, g)
			return nil
		})
		nb, err := db.apply(g)
		return G.Nodes{nx, nw, nb}, err
	}
	return o.apply(in...)
}
