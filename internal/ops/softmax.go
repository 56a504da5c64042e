package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Mask says which keys each query may attend to. Its parts combine by intersection; the zero Mask allows everything.
type Mask struct {
	Causal  bool    // query i sees key j where j ≤ i
	Lengths *G.Node // (B) of int: batch element b has that many valid keys
	Allow   *G.Node // bool, broadcast to (B, H, T, S): true means attend
	Bias    *G.Node // of the scores' dtype, broadcast to (B, H, T, S): added to the scores; −Inf masks
}

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
	if m.Lengths != nil {
		if m.Lengths.Dtype() != tensor.Int {
			return nil, fmt.Errorf("%s: the key lengths must be int, got %v", name, m.Lengths.Dtype())
		}
		if err := hasShape(name, "the key lengths", m.Lengths, full(s)[0]); err != nil {
			return nil, err
		}
	}
	if m.Allow != nil && m.Allow.Dtype() != tensor.Bool {
		return nil, fmt.Errorf("%s: the boolean mask must be bool (true means attend), got %v: a float mask is the bias", name, m.Allow.Dtype())
	}
	if m.Bias != nil {
		if err := sameDtype(name, "the bias", m.Bias, "the scores", scores); err != nil {
			return nil, err
		}
	}
	if scores.Dtype() == tensor.Float32 {
		return softmax[float32](scores, m)
	}
	return softmax[float64](scores, m)
}

// full is the shape of scores with batch and head axes of 1 where it has none.
func full(s tensor.Shape) [4]int {
	switch len(s) {
	case 2:
		return [4]int{1, 1, s[0], s[1]}
	case 3:
		return [4]int{s[0], 1, s[1], s[2]}
	}
	return [4]int{s[0], s[1], s[2], s[3]}
}

// fullMask is the shape of a mask for scores of the given rank, with axes of 1 in front: right-aligned, but where the
// scores have no head axis neither has the mask.
func fullMask(what string, mask, scores tensor.Shape) ([4]int, error) {
	out := [4]int{1, 1, 1, 1}
	want := full(scores)
	bad := func() ([4]int, error) {
		return out, fmt.Errorf("softmax: the %s must broadcast, right-aligned, to the scores' shape %v, got %v", what, scores, mask)
	}
	if len(mask) < 1 || len(mask) > len(scores) {
		return bad()
	}
	for i := range mask {
		out[4-len(mask)+i] = mask[i]
	}
	if len(scores) == 3 && len(mask) == 3 {
		out = [4]int{mask[0], 1, mask[1], mask[2]}
	}
	for i := range 3 {
		if out[i] != 1 && out[i] != want[i] {
			return bad()
		}
	}
	if out[3] > want[3] || out[3] < 1 {
		return bad()
	}
	return out, nil
}

func softmax[F kernel.Float](scores *G.Node, m Mask) (*G.Node, error) {
	shape := scores.Shape()
	k := kernel.Mask[F]{Shape: full(shape), Causal: m.Causal}
	in := G.Nodes{scores}
	var err error
	if m.Lengths != nil {
		in = append(in, m.Lengths)
	}
	if m.Allow != nil {
		if k.AllowShape, err = fullMask("boolean mask", m.Allow.Shape(), shape); err != nil {
			return nil, err
		}
		in = append(in, m.Allow)
	}
	if m.Bias != nil {
		if k.BiasShape, err = fullMask("bias", m.Bias.Shape(), shape); err != nil {
			return nil, err
		}
		in = append(in, m.Bias)
	}
	name := fmt.Sprintf("softmax%v(%t,%t,%t,%t)", shape, m.Causal, m.Lengths != nil, m.Allow != nil, m.Bias != nil)
	o := newOp(name, shape, func(w []F, in []G.Value) error {
		scores, err := elements[F](in[0], len(w))
		if err != nil {
			return err
		}
		k := k
		in = in[1:]
		if m.Lengths != nil {
			if k.Lengths, err = elements[int](in[0], k.Shape[0]); err != nil {
				return err
			}
			for b, n := range k.Lengths {
				if n < 0 || n > k.Shape[3] {
					return fmt.Errorf("key length %d of batch element %d isn't between 0 and the %d keys there are", n, b, k.Shape[3])
				}
			}
			in = in[1:]
		}
		if m.Allow != nil {
			if k.Allow, err = elements[bool](in[0], m.Allow.Shape().TotalSize()); err != nil {
				return err
			}
			in = in[1:]
		}
		if m.Bias != nil {
			if k.Bias, err = elements[F](in[0], m.Bias.Shape().TotalSize()); err != nil {
				return err
			}
		}
		kernel.MaskedSoftmax(w, scores, k)
		return nil
	})
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
			kernel.SumBroadcast(db, ds, k.BiasShape, k.Shape)
			return nil
		})
		grads[len(in)-1], err = db.apply(grads[0])
		return grads, err
	}
	return o.apply(in...)
}
