package ops

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Linear returns y = act(x·wᵀ + b). x has shape (…, I), w (O, I), b (O), and y (…, O). If b is nil, there is no bias.
// If act is Identity, there is no activation.
func Linear(e *Env, x, w, b *G.Node, act Activation) (*G.Node, error) {
	return LinearSum(e, x, w, b, nil, nil, 0, act)
}

// LinearSum returns y = act(x·wᵀ + b + by·u·vᵀ). It is like Linear with a second product, where u has shape (…, R),
// with the same leading axes as x, and v (O, R). If u and v are nil, there is no second product.
func LinearSum(e *Env, x, w, b, u, v *G.Node, by float64, act Activation) (*G.Node, error) {
	const name = "linear"
	if err := checkLinear(e, name, x, w, b); err != nil {
		return nil, err
	}
	if u != nil {
		if err := cmp.Or(sameDtype(name, "the second input", u, "the input", x), sameDtype(name, "the second weight", v, "the input", x)); err != nil {
			return nil, err
		}
		inner := u.Shape()[u.Dims()-1]
		if err := cmp.Or(hasShape(name, "the second input", u, append(x.Shape()[:x.Dims()-1], inner)...), hasShape(name, "the second weight", v, w.Shape()[0], inner)); err != nil {
			return nil, err
		}
	}
	if act != Identity && !act.Known() {
		return nil, fmt.Errorf("%s: there is no activation %d", name, int(act))
	}
	return ByDtype(x, linear[float32], linear[float64])(e, x, w, b, u, v, by, act)
}

// checkLinear checks the operands of x·wᵀ + b.
func checkLinear(e *Env, name string, x, w, b *G.Node) error {
	if err := cmp.Or(sameDtype(name, "the weight", w, "the input", x), e.checkPrecision(name, x)); err != nil {
		return err
	}
	if x.Dims() < 1 || w.Dims() != 2 || x.Shape()[x.Dims()-1] != w.Shape()[1] {
		return fmt.Errorf("%s: the input must have shape (…, I) and the weight (O, I), got %v and %v", name, x.Shape(), w.Shape())
	}
	if b == nil {
		return nil
	}
	return cmp.Or(sameDtype(name, "the bias", b, "the input", x), hasShape(name, "the bias", b, w.Shape()[0]))
}

func linear[F kernel.Float](e *Env, x, w, b, u, v *G.Node, by float64, act Activation) (*G.Node, error) {
	n, width := rows(x.Shape())
	out, rank := w.Shape()[0], 0
	shape := x.Shape()
	shape[len(shape)-1] = out

	attrs := fmt.Sprintf("%v%v(%v,%t)", shape, w.Shape(), act, b != nil)
	kept := e.Kept[w]
	second := 2 // index of u
	if b != nil {
		second++
	}
	if u != nil {
		rank = v.Shape()[1]
		attrs += fmt.Sprintf("(%d,%v)", rank, by)
	}
	var before *buffer[F] // x·wᵀ + b + by·u·vᵀ; nil unless a derivative needs it
	o := newOp("linear"+attrs, shape, func(y []F, values []G.Value) {
		x, w := read2[F](values, n*width, out*width)
		z := y
		if before != nil {
			z = before.slice()
		}
		finish := &kernel.Finish[F]{}
		if b != nil {
			finish.Bias = elements[F](values[2], out)
		}
		if act != Identity {
			finish.Y, finish.Activation = y, unaryOf[F](act).forward
		}
		if u != nil {
			u, v := read2[F](values[second:], n*rank, out*rank)
			gemm(e, false, true, n, out, width, 1, x, width, w, width, 0, z, nil, kept)    // (n, I) x (O, I)ᵀ -> (n, O)
			gemm(e, false, true, n, out, rank, F(by), u, rank, v, rank, 1, z, finish, nil) // (n, R) x (O, R)ᵀ -> (n, O)
			return
		}
		gemm(e, false, true, n, out, width, 1, x, width, w, width, 0, z, finish, kept) // (n, I) x (O, I)ᵀ -> (n, O)
	})
	if o.wrt = second; u != nil {
		o.wrt += 2
	}
	o.grad = func(inputs G.Nodes, y, g *G.Node) (G.Nodes, error) {
		var inner *buffer[F] // the gradient of x·wᵀ + b + by·u·vᵀ
		if act != Identity {
			inner = newBuffer[F](shape)
		}
		if act.needsInput() && before == nil {
			before = newBuffer[F](shape)
			o.fills = append(o.fills, &before.lease)
		}
		want, shapes := o.DiffWRT(len(inputs)), slices.Clone(o.shapes)
		want[1] = e.wants(w) // also if w is tied
		needs := G.Nodes{g}  // only what fill reads, so that the memory of other nodes is free before
		for i := range shapes {
			switch {
			case !want[i]:
				shapes[i] = nil
			case i < 2: // dx needs w, and dw needs x
				needs = append(needs, inputs[1-i])
			case i >= second: // du needs v, and dv needs u
				needs = append(needs, inputs[2*second+1-i])
			}
		}
		rest := o.rest
		if rest != nil {
			needs = append(needs, rest)
		}
		if act != Identity {
			needs = append(needs, y)
		}
		grads, err := joint(e, "linear.grad"+attrs, want, shapes, needs, inner, before, func(d [][]F, values []G.Value) {
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
			// product sets the gradients of by·x·wᵀ. Input i of the op is x, with width columns, and the next is w.
			product := func(i, width int, by F) {
				if want[i] {
					w := elements[F](values[slices.Index(needs, inputs[i+1])], out*width)
					var finish *kernel.Finish[F]
					if i == 0 && rest != nil {
						finish = &kernel.Finish[F]{Plus: elements[F](values[slices.Index(needs, rest)], n*width)}
					}
					gemm(e, false, false, n, width, out, by, g, out, w, width, 0, d[i], finish, nil) // (n, O) x (O, I) -> (n, I)
				}
				if want[i+1] {
					x := elements[F](values[slices.Index(needs, inputs[i])], n*width)
					skipGemm(e, true, false, out, width, n, by, g, out, x, width, d[i+1], width) // (n, O)ᵀ x (n, I) -> (O, I)
				}
			}
			product(0, width, 1)
			if b != nil && want[2] {
				kernel.SumRows(e.Cores, d[2], g)
			}
			if u != nil {
				product(second, rank, F(by))
			}
		})
		if t := e.ties[w]; t != nil && t.head == o && err == nil {
			t.grad = grads[1]
		}
		return grads, err
	}
	o.tied = true
	o.adds = true
	return e.apply(o, x, w, b, u, v, e.follow(o, x))
}
