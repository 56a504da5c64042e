package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Softmax turns scores of shape (T, S), (B, T, S) or (B, H, T, S) into attention weights: the softmax over the keys that
// the mask allows. A masked key has weight zero, whatever its score, and a query with no key has weights of zero.
func Softmax(scores *G.Node, m Mask) (*G.Node, error) {
	const name = "softmax"
	if err := scoresNode(name, scores); err != nil {
		return nil, err
	}
	if err := m.Check(name, scores.Shape(), scores); err != nil {
		return nil, err
	}
	if scores.Dtype() == tensor.Float32 {
		return softmax[float32](name, scores, m)
	}
	return softmax[float64](name, scores, m)
}

func softmax[F kernel.Float](name string, scores *G.Node, m Mask) (*G.Node, error) {
	shape := scores.Shape()
	mask, err := inputsOf[F](name, m, shape)
	if err != nil {
		return nil, err
	}
	o := newOp(fmt.Sprintf("softmax%v%v", shape, m), shape, func(w []F, in []G.Value) error {
		scores, err := elements[F](in[0], len(w))
		if err != nil {
			return err
		}
		k, err := mask.read(in[1:])
		if err != nil {
			return err
		}
		kernel.MaskedSoftmax(w, scores, k)
		return nil
	})
	in := append(G.Nodes{scores}, mask.nodes...)
	o.diff, o.layer = mask.diff(), m.Layer
	o.grad = func(_ G.Nodes, w, g *G.Node) (G.Nodes, error) {
		ds := newOp(fmt.Sprintf("softmax.dscores%v", shape), shape, func(ds []F, in []G.Value) error {
			w, g, err := read2[F](in, len(ds), len(ds))
			if err != nil {
				return err
			}
			kernel.SoftmaxGrad(ds, w, g, shape[len(shape)-1])
			return nil
		})
		n, err := ds.apply(w, g)
		if err != nil {
			return nil, err
		}
		return mask.grads(n)
	}
	return o.apply(in...)
}
