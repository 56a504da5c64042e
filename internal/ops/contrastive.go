package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Contrastive returns logits (B, B·K) and int targets (B), whose cross-entropy is the loss InfoNCE. The vectors have
// shape (B·K, D): for each of B examples, its query, its positive, and K−2 hard negatives. The logits of a query are
// its dot products with all vectors, divided by the temperature. Its target is its own positive, with index i·K+1.
//
// The texts (B, K) are the numbers of the vectors' texts. A negative number means that there is no text. If an example
// has no query or no positive, its target is −1, and its logits are −Inf. Otherwise the logits of a query are −Inf for
// all queries, for vectors without a text and, except at its own positive, for texts equal to itself or its positive.
// Logits of −Inf have no gradient.
func Contrastive(e *Env, vectors, texts *G.Node, temperature float64) (logits, targets *G.Node, err error) {
	const name = "contrastive"
	if err := CheckFloat(name, "the vectors", vectors); err != nil {
		return nil, nil, err
	}
	v, t := vectors.Shape(), texts.Shape()
	if texts.Dtype() != tensor.Int || len(t) != 2 || t[1] < 2 || len(v) != 2 || v[0] != t[0]*t[1] {
		return nil, nil, fmt.Errorf("%s: the vectors must have shape (B·K, D), and the texts dtype int and shape (B, K) with K of at least 2, got %v and %v of shape %v", name, v, texts.Dtype(), t)
	}
	if !(temperature >= 1e-30 && temperature <= Largest) { // the lower limit keeps it above 0 in float32
		return nil, nil, fmt.Errorf("%s: the temperature must be from 1e-30 to %v, got %v", name, Largest, temperature)
	}
	if logits, err = ByDtype(vectors, contrastive[float32], contrastive[float64])(e, vectors, texts, 1/temperature); err != nil {
		return nil, nil, err
	}
	targets, err = e.apply(newInts(fmt.Sprintf("positives%v", t), tensor.Shape{t[0]}, func(positives []int, values []G.Value) {
		numbers := elements[int](values[0], t.TotalSize())
		for i := range positives {
			positives[i] = i*t[1] + 1
			if min(numbers[i*t[1]], numbers[positives[i]]) < 0 {
				positives[i] = -1
			}
		}
	}), texts)
	return logits, targets, err
}

func contrastive[F kernel.Float](e *Env, vectors, texts *G.Node, scale float64) (*G.Node, error) {
	rows, each := texts.Shape()[0], texts.Shape()[1]
	n, width := rows*each, vectors.Shape()[1]
	shape := tensor.Shape{rows, n}
	// mask sets the logits, or their gradients, that have a fixed value.
	mask := func(x []F, texts []int, value F) {
		for i := range rows {
			query, positive := i*each, i*each+1
			for j := range n {
				equal := texts[j] == texts[query] || texts[j] == texts[positive]
				if min(texts[query], texts[positive], texts[j]) < 0 || j%each == 0 || equal && j != positive {
					x[i*n+j] = value
				}
			}
		}
	}
	attrs := fmt.Sprintf("%v(%d,%d,%v)", vectors.Shape(), rows, each, scale)
	o := newOp("contrastive"+attrs, shape, func(out []F, values []G.Value) {
		x, t := elements[F](values[0], n*width), elements[int](values[1], n)
		kernel.Gemm(e.Cores, false, true, rows, n, width, F(scale), x, each*width, x, width, 0, out, n) // every K-th row is a query
		mask(out, t, F(math.Inf(-1)))
	})
	o.wrt, o.grad = 1, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		work := newBuffer[F](shape)
		d := newOp("contrastive.dvectors"+attrs, vectors.Shape(), func(dx []F, values []G.Value) {
			x, t, g := elements[F](values[0], n*width), elements[int](values[1], n), work.slice()
			copy(g, elements[F](values[2], rows*n))
			mask(g, t, 0)
			kernel.SkipGemm(e.Cores, true, false, n, width, rows, F(scale), g, n, x, each*width, dx, width)
			// The first product is zero for the queries, because they are masked. The second one sets them.
			kernel.SkipGemm(e.Cores, false, false, rows, width, n, F(scale), g, n, x, width, dx, each*width)
		})
		d.fills = append(d.fills, &work.lease)
		return one(e.apply(d, inputs[0], inputs[1], g))
	}
	return e.apply(o, vectors, texts)
}
