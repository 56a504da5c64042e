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
	if err := floatNode(name, "the scores", scores); err != nil {
		return nil, err
	}
	s := scores.Shape()
	if len(s) < 2 || len(s) > 4 {
		return nil, fmt.Errorf("%s: the scores must have shape (T, S), (B, T, S) or (B, H, T, S), got %v", name, s)
	}
	if err := m.check(name, s, scores); err != nil {
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
	o.diff = make([]bool, len(in))
	o.diff[0] = true
	if m.Bias != nil {
		o.diff[len(in)-1] = true
	}
	o.grad = func(in G.Nodes, w, g *G.Node) (G.Nodes, error) {
		grads := make(G.Nodes, len(in))
		ds := newOp(fmt.Sprintf("softmax.dscores%v", shape), shape, func(ds []F, in []G.Value) error {
			w, g, err := read2[F](in, len(ds), len(ds))
			if err != nil {
				return err
			}
			kernel.SoftmaxGrad(ds, w, g, shape[len(shape)-1])
			return nil
		})
		if grads[0], err = ds.apply(w, g); err != nil || m.Bias == nil {
			return grads, err
		}
		biasShape := m.Bias.Shape()
		db := newOp(fmt.Sprintf("softmax.dbias%v%v", shape, biasShape), biasShape, func(db []F, in []G.Value) error {
			ds, err := elements[F](in[0], shape.TotalSize())
			if err != nil {
				return err
			}
			kernel.SumBroadcast(db, ds, mask.known.BiasShape, mask.known.Shape)
			return nil
		})
		grads[len(in)-1], err = db.apply(grads[0])
		return grads, err
	}
	return o.apply(in...)
}
