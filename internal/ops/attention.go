package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// An AttentionConfig is what attention does besides softmax(Q·Kᵀ)·V.
type AttentionConfig struct {
	Heads   int     // heads that lie side by side on the last axis of the queries, H; 0 if they have an axis, or if there is one head
	Groups  int     // of the keys and values likewise, G; H if 0, and 0 if Heads is
	Scale   float64 // of the scores
	Softcap float64 // c·tanh(s/c) is taken of the scores s, before the mask; 0 for none
	Mask    Mask
	Dropout float64 // probability of dropping a weight
}

// Attention is softmax(scale·Q·Kᵀ + M)·V in one op, which never holds anything of size T×S: forward it keeps the output
// and a number for each query, and backward it computes the weights again, tile by tile (Dao et al., FlashAttention,
// 2022). It means what MatMul, Softcap, Softmax, Dropout and MatMul mean, skipped zeros included.
//
// With Heads 0, queries of shape (T, K), (B, T, K) or (B, H, T, K), keys (…, S, K) and values (…, S, V) give (…, T, V);
// keys and values may have G heads where the queries have H, a multiple: query head h reads head ⌊h·G/H⌋. Otherwise the
// heads lie side by side: (B, T, H·K), (B, S, G·K) and (B, S, G·V) give (B, T, H·V), all without B if the queries have
// none. The mask meets scores of shape (T, S), (B, T, S) or (B, H, T, S), the last if Heads isn't 0.
func Attention(e *Env, q, k, v *G.Node, c AttentionConfig) (*G.Node, error) {
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
	l, err := layoutOf(name, q.Shape(), k.Shape(), v.Shape(), c)
	if err != nil {
		return nil, err
	}
	if err := c.Mask.Check(name, l.scores, q); err != nil {
		return nil, err
	}
	if q.Dtype() == tensor.Float32 {
		return attention[float32](e, q, k, v, l, c)
	}
	return attention[float64](e, q, k, v, l, c)
}

// attentionLayout is how queries, keys and values lie.
type attentionLayout struct {
	side                        bool // heads side by side
	heads, groups, width, value int
	scores, out                 tensor.Shape
}

func layoutOf(name string, q, k, v tensor.Shape, c AttentionConfig) (l attentionLayout, err error) {
	r := len(q)
	bad := func(format string) (attentionLayout, error) {
		return l, fmt.Errorf("%s: "+format+", got %v, %v and %v", name, q, k, v)
	}
	if c.Heads < 0 || c.Groups < 0 || c.Groups > 0 && (c.Heads == 0 || c.Heads%c.Groups != 0) {
		return l, fmt.Errorf("%s: the number of heads must be at least 0, and a multiple of that of keys and values, got %d and %d", name, c.Heads, c.Groups)
	}
	if r < 2 || r > 4 || r == 4 && c.Heads > 0 || len(k) != r || len(v) != r {
		return bad("query, key and value must all have shape (T, K), (B, T, K) or (B, H, T, K)")
	}
	if r > 2 && (q[0] != k[0] || q[0] != v[0]) || r == 4 && (k[1] != v[1] || q[1]%k[1] != 0) {
		return bad("query, key and value must have the same batch axis, and the query's heads be a multiple of the others'")
	}
	if k[r-2] != v[r-2] {
		return bad("key (…, S, K) and value (…, S, V) must agree in S")
	}
	l = attentionLayout{heads: 1, groups: 1, width: q[r-1], value: v[r-1]}
	width := k[r-1]
	l.scores = append(q[:r-1].Clone(), k[r-2])
	switch {
	case c.Heads > 0:
		l.side, l.heads, l.groups = true, c.Heads, cmp.Or(c.Groups, c.Heads)
		if l.width%l.heads != 0 || width%l.groups != 0 || l.value%l.groups != 0 {
			return bad(fmt.Sprintf("the widths must be multiples of %d heads, and of %d of keys and values", l.heads, l.groups))
		}
		l.width, width, l.value = l.width/l.heads, width/l.groups, l.value/l.groups
		l.scores = tensor.Shape{1, l.heads, q[r-2], k[r-2]}
		if r == 3 {
			l.scores[0] = q[0]
		}
		l.out = append(q[:r-1].Clone(), l.heads*l.value)
	default:
		if r == 4 {
			l.heads, l.groups = q[1], k[1]
		}
		l.out = append(q[:r-1].Clone(), l.value)
	}
	if l.width != width {
		return bad("query (…, T, K) and key (…, S, K) must agree in the width K of a head")
	}
	return l, nil
}

// attentionState is what the forward op leaves for the backward one.
type attentionState[F kernel.Float] struct {
	kernel kernel.Attention[F]
	lse    []F    // of each query
	run    uint64 // the next
}

func attention[F kernel.Float](e *Env, q, k, v *G.Node, l attentionLayout, c AttentionConfig) (*G.Node, error) {
	m := c.Mask
	mask := inputsOf[F](m, l.scores)
	shape := mask.known.Shape
	queries, keys := shape[2], shape[3]
	rows := func(data []F, heads, length, width int) kernel.Rows[F] {
		if l.side {
			return kernel.SideRows(data, heads, length, width)
		}
		return kernel.HeadRows(data, heads, length, width)
	}
	// operands are the queries, keys and values, and the mask in between.
	operands := func(a *kernel.Attention[F], in []G.Value) (q, k, v kernel.Rows[F], err error) {
		qs, ks, vs, err := read3[F](in, shape[0]*l.heads*queries*l.width, shape[0]*l.groups*keys*l.width, shape[0]*l.groups*keys*l.value)
		if err == nil {
			a.Mask, err = mask.read(in[3:])
		}
		return rows(qs, l.heads, queries, l.width), rows(ks, l.groups, keys, l.width), rows(vs, l.groups, keys, l.value), err
	}

	dropped := e.drop(c.Dropout)
	state := &attentionState[F]{run: dropped.firstRun, kernel: kernel.Attention[F]{
		Width: l.width, Value: l.value, Groups: l.groups, Scale: F(c.Scale), Softcap: F(c.Softcap),
		Dropout: kernel.AttentionDropout{P: dropped.p, Seed: dropped.seed, Stream: dropped.stream},
	}}
	attrs := fmt.Sprintf("%v%v%v(%d,%d,%v,%v)%v", q.Shape(), k.Shape(), v.Shape(), c.Heads, c.Groups, c.Scale, c.Softcap, m)
	if dropped.p > 0 {
		attrs += fmt.Sprintf(" dropout%v", dropped)
	}
	o := newOp("attention"+attrs, l.out, func(out []F, in []G.Value) error {
		q, k, v, err := operands(&state.kernel, in)
		if err != nil {
			return err
		}
		if state.lse == nil {
			state.lse = make([]F, shape[0]*shape[1]*queries)
		}
		state.kernel.Dropout.Run = state.run
		state.run++
		state.kernel.Forward(q, k, v, rows(out, l.heads, queries, l.value), state.lse)
		return nil
	})
	o.shared, o.layer = state, m.Layer
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
		parts, err := joint(e, "attention.grad"+attrs, shapes, append(in[:at:at], out, g), func(grads [][]F, in []G.Value) error {
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
			state.kernel.Backward(q, k, v, rows(out, l.heads, queries, l.value), rows(g, l.heads, queries, l.value), state.lse,
				rows(grads[0], l.heads, queries, l.width), rows(grads[1], l.groups, keys, l.width), rows(grads[2], l.groups, keys, l.value), dbias)
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
	return e.apply(o, in...)
}
