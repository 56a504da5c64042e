package ops

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Linear returns y = act(x·wᵀ + b). x has shape (…, I), w (O, I), b (O), and y (…, O). If b is nil, there is no bias.
// If act is Identity, there is no activation.
func Linear(e *Env, x, w, b *G.Node, act Activation) (*G.Node, error) {
	const name = "linear"
	if err := sameDtype(name, "the weight", w, "the input", x); err != nil {
		return nil, err
	}
	if x.Dims() < 1 || w.Dims() != 2 || x.Shape()[x.Dims()-1] != w.Shape()[1] {
		return nil, fmt.Errorf("%s: the input must have shape (…, I) and the weight (O, I), got %v and %v", name, x.Shape(), w.Shape())
	}
	if b != nil {
		if err := cmp.Or(sameDtype(name, "the bias", b, "the input", x), hasShape(name, "the bias", b, w.Shape()[0])); err != nil {
			return nil, err
		}
	}
	if act != Identity && !act.Known() {
		return nil, fmt.Errorf("%s: there is no activation %d", name, int(act))
	}
	return byDtype(x, linear[float32], linear[float64])(e, x, w, b, act)
}

func linear[F kernel.Float](e *Env, x, w, b *G.Node, act Activation) (*G.Node, error) {
	n, width := rows(x.Shape())
	out := w.Shape()[0]
	shape := x.Shape()
	shape[len(shape)-1] = out

	attrs := fmt.Sprintf("%v%v(%v,%t)", shape, w.Shape(), act, b != nil)
	var before *buffer[F] // x·wᵀ + b; nil unless a derivative needs it
	o := newOp("linear"+attrs, shape, func(y []F, values []G.Value) {
		x, w := read2[F](values, n*width, out*width)
		z := y
		if before != nil {
			z = before.slice()
		}
		kernel.Gemm(e.Cores, false, true, n, out, width, 1, x, width, w, width, 0, z, out) // (n, I) x (O, I)ᵀ -> (n, O)
		if bias := optional[F](values, 2, out); bias != nil {
			kernel.AddRow(e.Cores, z, bias)
		}
		if act != Identity {
			unaryOf[F](act).forward(e.Cores, y, z)
		}
	})
	shapes := []tensor.Shape{x.Shape(), w.Shape()}
	if b != nil {
		shapes = append(shapes, b.Shape())
	}
	o.wrt, o.grad = len(shapes), func(inputs G.Nodes, y, g *G.Node) (G.Nodes, error) {
		var inner *buffer[F] // the gradient of x·wᵀ + b
		if act != Identity {
			inner = newBuffer[F](shape)
		}
		if act.needsInput() && before == nil {
			before = newBuffer[F](shape)
			o.fills = append(o.fills, &before.lease)
		}
		want, shapes := o.DiffWRT(len(shapes)), slices.Clone(shapes)
		needs := G.Nodes{g} // only what fill reads, so that the memory of other nodes is free before
		for i := range shapes {
			switch {
			case !want[i]:
				shapes[i] = nil
			case i < 2: // dx needs w, and dw needs x
				needs = append(needs, inputs[1-i])
			}
		}
		if act != Identity {
			needs = append(needs, y)
		}
		return joint(e, "linear.grad"+attrs, want, shapes, needs, inner, before, func(d [][]F, values []G.Value) {
			g := elements[F](values[0], n*out)
			if act != Identity {
				var z []F
				if before != nil {
					z = before.data
				} else { // the output suffices
					z = elements[F](values[len(values)-1], n*out)
				}
				unaryOf[F](act).backward(e.Cores, inner.slice(), z, g)
				g = inner.slice()
			}
			if want[0] {
				w := elements[F](values[slices.Index(needs, inputs[1])], out*width)
				kernel.Gemm(e.Cores, false, false, n, width, out, 1, g, out, w, width, 0, d[0], width) // (n, O) x (O, I) -> (n, I)
			}
			if want[1] {
				x := elements[F](values[slices.Index(needs, inputs[0])], n*width)
				kernel.SkipGemm(e.Cores, true, false, out, width, n, 1, g, out, x, width, d[1], width) // (n, O)ᵀ x (n, I) -> (O, I)
			}
			if len(d) == 3 && want[2] {
				kernel.SumRows(e.Cores, d[2], g)
			}
		})
	}
	return e.apply(o, x, w, b)
}
