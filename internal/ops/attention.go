package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Attention returns softmax(scale·Q·Kᵀ + M)·V. It is one op, which allocates no memory of size T×S: the forward pass
// keeps the output and one number per query, and the backward pass computes the weights again, tile by tile (Dao et
// al., FlashAttention, 2022). Up to rounding, Attention gives the same result as the separate ops MatMul, Softcap,
// Softmax, Dropout and MatMul. It also skips the same zeros.
func Attention(e *Env, q, k, v *G.Node, c AttentionConfig) (*G.Node, error) {
	inputs, err := c.Inputs(e, q, k, v)
	if err != nil {
		return nil, err
	}
	return ByDtype(q, attention[float32], attention[float64])(e, inputs)
}

// attentionState is the state that the forward op passes to the backward op.
type attentionState[F kernel.Float] struct {
	kernel kernel.Attention[F]
	lse    []F // log-sum-exp of each query's scores
	runs   runs
}

func attention[F kernel.Float](e *Env, c AttentionInputs) (*G.Node, error) {
	q, k, v, l, m := c.Query, c.Key, c.Value, c.layout, c.Mask
	mask := inputsOf[F](m, l.scores)
	shape := mask.known.Shape
	queries, keys := shape[2], shape[3]
	rows := func(data []F, heads, length, width int) kernel.Rows[F] {
		return vectorsOf(c, data, heads, length, width)
	}
	leading := append(G.Nodes{q, k, v}, c.Distances.nodes()...) // with a gradient, in front of the mask's inputs
	sink := len(leading)
	if c.Sinks != nil {
		leading = append(leading, c.Sinks)
	}
	// operands returns the queries, keys and values, and sets a.Mask, a.Sinks and a.Distances. The argument grads has
	// the gradients of the Distances, or is nil.
	operands := func(a *kernel.Attention[F], values []G.Value, grads [][]F) (q, k, v kernel.Rows[F]) {
		qs, ks, vs := read3[F](values, shape[0]*l.heads*queries*l.width, shape[0]*l.groups*keys*l.width, shape[0]*l.groups*keys*l.value)
		a.Mask, a.Sinks = mask.read(values[len(leading):]), optional[F](values[:len(leading)], sink, l.heads)
		readDistances(a.Distances, c.Distances, values[3:], grads)
		return rows(qs, l.heads, queries, l.width), rows(ks, l.groups, keys, l.width), rows(vs, l.groups, keys, l.value)
	}

	dropped := e.drop(c.Dropout)
	state := &attentionState[F]{kernel: kernel.Attention[F]{
		Width: l.width, Value: l.value, Groups: l.groups, Scale: F(c.Scale), Softcap: F(c.Softcap), Score: c.Score,
		Dropout:   kernel.AttentionDropout{P: dropped.p, Seed: dropped.seed, Stream: dropped.stream},
		Distances: kernelDistances[F](c.Distances),
	}}
	attrs := fmt.Sprintf("%v%v%v(%d,%d,%v,%v)%v%v", q.Shape(), k.Shape(), v.Shape(), c.Heads, c.KeyValueHeads, c.Scale, c.Softcap, m, c.Distances)
	if c.Sinks != nil {
		attrs += " sinks"
	}
	if dropped.p > 0 {
		attrs += fmt.Sprintf(" dropout%v", dropped)
	}
	if c.Score != nil {
		attrs += e.unlike()
	}
	o := newOp("attention"+attrs, l.out, func(out []F, values []G.Value) {
		q, k, v := operands(&state.kernel, values, nil)
		if state.lse == nil {
			state.lse = make([]F, shape[0]*shape[1]*queries)
		}
		state.kernel.Dropout.Run = state.runs.next(e)
		state.kernel.Forward(e.Cores, q, k, v, rows(out, l.heads, queries, l.value), state.lse)
	})
	o.shared, o.layer = state, c.Name
	var shapes []tensor.Shape
	for _, n := range leading {
		shapes = append(shapes, n.Shape())
	}
	if m.Bias != nil {
		shapes = append(shapes, m.Bias.Shape())
	}
	o.wrt, o.grad = len(shapes), func(inputs G.Nodes, out, g *G.Node) (G.Nodes, error) {
		state := state
		if owner, ok := out.Op().(*op); ok { // apply may have returned an earlier, equal node: its op has the state
			state = owner.shared.(*attentionState[F])
		}
		given, want, shapes := len(inputs), o.DiffWRT(len(shapes)), slices.Clone(shapes)
		bias := len(leading)
		for i := sink; i < len(want); i++ {
			if !want[i] {
				shapes[i] = nil
			}
		}
		return joint(e, "attention.grad"+attrs, want, shapes, append(inputs[:given:given], out, g), nil, nil, func(grads [][]F, values []G.Value) {
			q, k, v := operands(&state.kernel, values, grads[3:])
			out, g := read2[F](values[given:], l.out.TotalSize(), l.out.TotalSize())
			var dbias []F
			if m.Bias != nil {
				dbias = grads[bias]
			}
			if c.Sinks != nil {
				state.kernel.SinkGrads = grads[sink]
			}
			state.kernel.Backward(e.Cores, q, k, v, rows(out, l.heads, queries, l.value), rows(g, l.heads, queries, l.value), state.lse,
				rows(grads[0], l.heads, queries, l.width), rows(grads[1], l.groups, keys, l.width), rows(grads[2], l.groups, keys, l.value), dbias)
		})
	}
	return e.apply(o, append(leading, mask.nodes...)...)
}
