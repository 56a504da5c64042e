package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Gate returns act(a)·b, element by element, for two nodes of the same shape (Dauphin et al., 2016; Shazeer, 2020).
func Gate(e *Env, a, b *G.Node, act Activation) (*G.Node, error) {
	const name = "gate"
	if err := cmp.Or(sameDtype(name, "the gated value", b, "the gate", a), hasShape(name, "the gated value", b, a.Shape()...)); err != nil {
		return nil, err
	}
	if !act.Known() {
		return nil, fmt.Errorf("%s: there is no activation %d", name, int(act))
	}
	return ByDtype(a, gate[float32], gate[float64])(e, a, b, act)
}

func gate[F kernel.Float](e *Env, a, b *G.Node, act Activation) (*G.Node, error) {
	u := unaryOf[F](act)
	grad := ofInput(act, u)
	shape := a.Shape()
	n := shape.TotalSize()
	attrs := fmt.Sprintf("%v(%v)", shape, act)
	o := newOp("gate"+attrs, shape, func(y []F, values []G.Value) {
		a, b := read2[F](values, n, n)
		kernel.Gate(e.Cores, y, a, b, u.forward)
	})
	o.wrt, o.grad = 2, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return joint(e, "gate.grad"+attrs, o.DiffWRT(2), []tensor.Shape{shape, shape}, []*G.Node{inputs[0], inputs[1], g}, nil, nil, func(out [][]F, values []G.Value) {
			a, b, g := read3[F](values, n, n, n)
			kernel.GateGrad(e.Cores, out[0], out[1], a, b, g, u.forward, grad)
		})
	}
	return e.apply(o, a, b)
}

// ofInput returns the derivative of an activation as a function of its input. dx must not be g.
func ofInput[F kernel.Float](act Activation, u unary[F]) func(cores int, dx, x, g []F) {
	if act.needsInput() {
		return u.backward
	}
	return func(cores int, dx, x, g []F) { // compute the output again, in the memory of the result
		u.forward(cores, dx, x)
		u.backward(cores, dx, dx, g)
	}
}
