package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Attention is softmax(scale·Q·Kᵀ + M)·V in one op, which never holds anything of size T×S: forward it keeps the output
// and a number for each query, and backward it computes the weights again, tile by tile (Dao et al., FlashAttention,
// 2022). It means what MatMul, Softmax and MatMul mean, skipped zeros included.
//
// With heads 0, queries of shape (T, K), (B, T, K) or (B, H, T, K), keys (…, S, K) and values (…, S, V) give (…, T, V).
// Otherwise the heads lie side by side: (B, T, H·K), (B, S, H·K) and (B, S, H·V) give (B, T, H·V), all without B if the
// queries have none. The mask meets scores of shape (T, S), (B, T, S) or (B, H, T, S), the last if heads isn't 0.
func Attention(q, k, v *G.Node, heads int, scale float64, m Mask) (*G.Node, error) {
	const name = "attention"
	if err := floatNode(name, "the query", q); err != nil {
		return nil, err
	}
	if err := sameDtype(name, "the key", k, "the query", q); err != nil {
		return nil, err
	}
	if err := sameDtype(name, "the value", v, "the query", q); err != nil {
		return nil, err
	}
	l, err := layoutOf(name, q.Shape(), k.Shape(), v.Shape(), heads)
	if err != nil {
		return nil, err
	}
	if err := m.check(name, l.scores, q); err != nil {
		return nil, err
	}
	if q.Dtype() == tensor.Float32 {
		return attention[float32](name, q, k, v, l, scale, m)
	}
	return attention[float64](name, q, k, v, l, scale, m)
}

// attentionLayout is how queries, keys and values lie.
type attentionLayout struct {
	side                bool // heads side by side
	heads, width, value int
	scores, out         tensor.Shape
}

func layoutOf(name string, q, k, v tensor.Shape, heads int) (l attentionLayout, err error) {
	r := len(q)
	bad := func(format string) (attentionLayout, error) {
		return l, fmt.Errorf("%s: "+format+", got %v, %v and %v", name, q, k, v)
	}
	if heads < 0 {
		return l, fmt.Errorf("%s: the number of heads must be at least 0, got %d", name, heads)
	}
	if r < 2 || r > 4 || r == 4 && heads > 0 || len(k) != r || len(v) != r {
		return bad("query, key and value must all have shape (T, K), (B, T, K) or (B, H, T, K)")
	}
	if !slices.Equal(q[:r-2], k[:r-2]) || !slices.Equal(q[:r-2], v[:r-2]) {
		return bad("query, key and value must have the same batch and head axes")
	}
	if q[r-1] != k[r-1] || k[r-2] != v[r-2] {
		return bad("query (…, T, K), key (…, S, K) and value (…, S, V) must agree in K and S")
	}
	l = attentionLayout{heads: 1, width: q[r-1], value: v[r-1]}
	l.out = append(q[:r-1].Clone(), v[r-1])
	l.scores = append(q[:r-1].Clone(), k[r-2])
	switch {
	case heads > 0:
		if l.width%heads != 0 || l.value%heads != 0 {
			return bad(fmt.Sprintf("the widths must be multiples of %d heads", heads))
		}
		l.side, l.heads, l.width, l.value = true, heads, l.width/heads, l.value/heads
		l.scores = tensor.Shape{1, heads, q[r-2], k[r-2]}
		if r == 3 {
			l.scores[0] = q[0]
		}
	case r == 4:
		l.heads = q[1]
	}
	return l, nil
}

// attentionState is what the forward op leaves for the backward one.
type attentionState[F kernel.Float] struct {
	kernel kernel.Attention[F]
	lse    []F // of each query
}

func attention[F kernel.Float](name string, q, k, v *G.Node, l attentionLayout, scale float64, m Mask) (*G.Node, error) {
	mask, err := inputsOf[F](name, m, l.scores)
	if err != nil {
		return nil, err
	}
	shape := mask.known.Shape
	queries, keys := shape[2], shape[3]
	rows := func(data []F, length, width int) kernel.Rows[F] {
		if l.side {
			return kernel.SideRows(data, l.heads, length, width)
		}
		return kernel.HeadRows(data, l.heads, length, width)
	}
	// operands are the queries, keys and values, and the mask in between.
	operands := func(a *kernel.Attention[F], in []G.Value) (q, k, v kernel.Rows[F], err error) {
		vectors := shape[0] * shape[1]
		qs, ks, vs, err := read3[F](in, vectors*queries*l.width, vectors*keys*l.width, vectors*keys*l.value)
		if err == nil {
			a.Mask, err = mask.read(in[3:])
		}
		return rows(qs, queries, l.width), rows(ks, keys, l.width), rows(vs, keys, l.value), err
	}

	state := &attentionState[F]{kernel: kernel.Attention[F]{Width: l.width, Value: l.value, Scale: F(scale)}}
	attrs := fmt.Sprintf("%v%v%v(%d,%v)%v", q.Shape(), k.Shape(), v.Shape(), l.heads, scale, m)
	if l.side {
		attrs += " side by side"
	}
	o := newOp("attention"+attrs, l.out, func(out []F, in []G.Value) error {
		q, k, v, err := operands(&state.kernel, in)
		if err != nil {
			return err
		}
		if state.lse == nil {
			state.lse = make([]F, shape[0]*shape[1]*queries)
		}
		state.kernel.Forward(q, k, v, rows(out, queries, l.value), state.lse)
		return nil
	})
	o.shared = state
	in := append(G.Nodes{q, k, v}, mask.nodes...)
	o.diff = make([]bool, len(in))
	o.diff[0], o.diff[1], o.diff[2] = true, true, true
	shapes := []tensor.Shape{q.Shape(), k.Shape(), v.Shape()}
	if m.Bias != nil {
		o.diff[len(in)-1] = true
		shapes = append(shapes, m.Bias.Shape())
	}
	o.grad = func(in G.Nodes, out, g *G.Node) (G.Nodes, error) {
		state := state
		if owner, ok := out.Op().(*op); ok { // Gorgonia may have handed out an equal node
			state = owner.shared.(*attentionState[F])
		}
		at := len(in)
		parts, err := joint("attention.grad"+attrs, shapes, append(in[:at:at], out, g), func(grads [][]F, in []G.Value) error {
			q, k, v, err := operands(&state.kernel, in)
			if err != nil {
				return err
			}
			out, g, err := read2[F](in[at:], l.out.TotalSize(), l.out.TotalSize())
			if err != nil {
				return err
			}
			var dbias []F
			if m.Bias != nil {
				dbias = grads[3]
			}
			state.kernel.Backward(q, k, v, rows(out, queries, l.value), rows(g, queries, l.value), state.lse,
				rows(grads[0], queries, l.width), rows(grads[1], keys, l.width), rows(grads[2], keys, l.value), dbias)
			return nil
		})
		if err != nil {
			return nil, err
		}
		grads := make(G.Nodes, len(in))
		copy(grads, parts[:3])
		if m.Bias != nil {
			grads[len(in)-1] = parts[3]
		}
		return grads, nil
	}
	return o.apply(in...)
}
