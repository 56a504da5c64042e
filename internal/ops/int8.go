package ops

import (
	"cmp"
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

var errInt8Gradient = errors.New("there are no gradients through int8 weights: compute them with the float32 weights")

// LinearInt8 is like LinearSum with quantised weights w of shape (O, I), for float32. The node scales holds the scales
// of w; it tells the graph's weights apart. There is no derivative.
func LinearInt8(e *Env, x, scales *G.Node, w *kernel.Int8, b, u, v *G.Node, by float64, act Activation) (*G.Node, error) {
	const name = "linear with int8 weights"
	out, width := w.Shape()
	n, last := rows(x.Shape())
	if x.Dtype() != tensor.Float32 || last != width {
		return nil, fmt.Errorf("%s: the input must be float32 of shape (…, %d), got %v of shape %v", name, width, x.Dtype(), x.Shape())
	}
	if err := hasShape(name, "the scales", scales, out); err != nil {
		return nil, err
	}
	second, rank := 2, 0 // index of u, and its width
	if b != nil {
		second++
		if err := cmp.Or(sameDtype(name, "the bias", b, "the input", x), hasShape(name, "the bias", b, out)); err != nil {
			return nil, err
		}
	}
	if u != nil {
		rank = v.Shape()[1]
	}
	shape := x.Shape()
	shape[len(shape)-1] = out
	o := newOp(fmt.Sprintf("%s%v(%v,%t,%d,%v)", name, shape, act, b != nil, rank, by), shape, func(y []float32, values []G.Value) {
		kernel.MulInt8(e.Cores, y, elements[float32](values[0], n*width), w) // (n, I) x (O, I)ᵀ -> (n, O)
		if u != nil {
			u, v := read2[float32](values[second:], n*rank, out*rank)
			kernel.Gemm(e.Cores, false, true, n, out, rank, float32(by), u, rank, v, rank, 1, y, out) // (n, R) x (O, R)ᵀ -> (n, O)
		}
		if b != nil {
			kernel.AddRow(e.Cores, y, elements[float32](values[2], out))
		}
		if act != Identity {
			unaryOf[float32](act).forward(e.Cores, y, y)
		}
	})
	o.wrt, o.grad = 1, func(G.Nodes, *G.Node, *G.Node) (G.Nodes, error) { return nil, errInt8Gradient }
	return e.apply(o, x, scales, b, u, v)
}

// EmbeddingInt8 is like Embedding with a quantised table, for float32. The node scales holds the scales of the table.
// There is no derivative.
func EmbeddingInt8(e *Env, scales *G.Node, table *kernel.Int8, ids *G.Node) (*G.Node, error) {
	vocab, width := table.Shape()
	n, shape := ids.Shape().TotalSize(), append(ids.Shape(), width)
	o := newOp(fmt.Sprintf("embedding of int8%v%v", shape, vocab), shape, func(out []float32, values []G.Value) {
		ids := elements[int](values[1], n)
		checkIDs(ids, vocab)
		kernel.GatherInt8(out, table, ids)
	})
	return e.apply(o, scales, ids)
}
