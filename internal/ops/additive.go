package ops

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// AdditiveScores returns Σ v·tanh(q_i + k_j), summed over the K features of query i and key j (Bahdanau, Cho and
// Bengio, 2014). q has shape (…, T, K), k has shape (…, S, K) with the same leading axes, and the scores have shape (…,
// T, S). v has shape (K); if v is nil, all its elements are 1.
//
// No memory of size T×S×K is needed, because the backward pass computes each tanh again. If the gradient of a score is
// exactly 0, its query and key get no gradient from it, even if they hold NaN or infinity.
func AdditiveScores(e *Env, q, k, v *G.Node) (*G.Node, error) {
	const name = "additive scores"
	if err := sameDtype(name, "the key", k, "the query", q); err != nil {
		return nil, err
	}
	qs, ks := q.Shape(), k.Shape()
	r := len(qs)
	if r < 2 || len(ks) != r || !slices.Equal(qs[:r-2], ks[:r-2]) || qs[r-1] != ks[r-1] {
		return nil, fmt.Errorf("%s: the query must have shape (…, T, K) and the key (…, S, K), got %v and %v", name, qs, ks)
	}
	if v != nil {
		if err := cmp.Or(sameDtype(name, "the scale", v, "the query", q), hasShape(name, "the scale", v, qs[r-1])); err != nil {
			return nil, err
		}
	}
	return ByDtype(q, additiveScores[float32], additiveScores[float64])(e, name, q, k, v)
}

func additiveScores[F kernel.Float](e *Env, name string, q, k, v *G.Node) (*G.Node, error) {
	qs, ks := q.Shape(), k.Shape()
	r := len(qs)
	s := kernel.AdditiveShape{Batch: volume(qs[:r-2]), Queries: qs[r-2], Keys: ks[r-2], Width: qs[r-1]}
	shape := append(qs[:r-1].Clone(), s.Keys)

	shapes := []tensor.Shape{qs, ks}
	if v != nil {
		shapes = append(shapes, v.Shape())
	}
	// operands returns the elements of q, k and v. The last slice is nil if v is nil.
	operands := func(values []G.Value) (q, k, scale []F) {
		q, k = read2[F](values, s.Batch*s.Queries*s.Width, s.Batch*s.Keys*s.Width)
		return q, k, optional[F](values[:len(shapes)], 2, s.Width)
	}
	attrs := fmt.Sprintf("%v%v(%t)", qs, ks, v != nil)
	o := newOp(name+attrs, shape, func(scores []F, values []G.Value) {
		q, k, v := operands(values)
		kernel.AdditiveScores(e.Cores, scores, q, k, v, s)
	})
	o.wrt, o.grad = len(shapes), func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		given := len(inputs)
		var work *buffer[F]
		if v != nil {
			work = newBuffer[F](tensor.Shape{kernel.AdditiveWork(s)})
		}
		return joint(e, name+".grad"+attrs, o.DiffWRT(len(shapes)), shapes, append(inputs[:given:given], g), work, nil, func(d [][]F, values []G.Value) {
			q, k, v := operands(values)
			g := elements[F](values[given], shape.TotalSize())
			if v == nil {
				kernel.AdditiveScoresGrad(e.Cores, d[0], d[1], nil, q, k, nil, g, s, nil)
			} else {
				kernel.AdditiveScoresGrad(e.Cores, d[0], d[1], d[2], q, k, v, g, s, work.slice())
			}
		})
	}
	return e.apply(o, q, k, v)
}
