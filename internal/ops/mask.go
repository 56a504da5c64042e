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

// check checks the mask's nodes but for how Allow and Bias broadcast. like has the scores' dtype.
func (m Mask) check(name string, scores tensor.Shape, like *G.Node) error {
	if m.Lengths != nil {
		if m.Lengths.Dtype() != tensor.Int {
			return fmt.Errorf("%s: the key lengths must be int, got %v", name, m.Lengths.Dtype())
		}
		if err := hasShape(name, "the key lengths", m.Lengths, full(scores)[0]); err != nil {
			return err
		}
	}
	if m.Allow != nil && m.Allow.Dtype() != tensor.Bool {
		return fmt.Errorf("%s: the boolean mask must be bool (true means attend), got %v: a float mask is the bias", name, m.Allow.Dtype())
	}
	if m.Bias != nil {
		return sameDtype(name, "the bias", m.Bias, "the scores", like)
	}
	return nil
}

// String is which parts there are, for the names of ops.
func (m Mask) String() string {
	return fmt.Sprintf("(%t,%t,%t,%t)", m.Causal, m.Lengths != nil, m.Allow != nil, m.Bias != nil)
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
func fullMask(name, what string, mask, scores tensor.Shape) ([4]int, error) {
	out := [4]int{1, 1, 1, 1}
	want := full(scores)
	bad := func() ([4]int, error) {
		return out, fmt.Errorf("%s: the %s must broadcast, right-aligned, to the scores' shape %v, got %v", name, what, scores, mask)
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

// maskInputs is a mask as an op takes it: what is known of it, and the nodes of the rest, in order.
type maskInputs[F kernel.Float] struct {
	Mask
	known kernel.Mask[F]
	nodes G.Nodes
}

// inputsOf checks that a mask broadcasts to scores of the given shape.
func inputsOf[F kernel.Float](name string, m Mask, scores tensor.Shape) (in maskInputs[F], err error) {
	in = maskInputs[F]{Mask: m, known: kernel.Mask[F]{Shape: full(scores), Causal: m.Causal}}
	if m.Lengths != nil {
		in.nodes = append(in.nodes, m.Lengths)
	}
	if m.Allow != nil {
		if in.known.AllowShape, err = fullMask(name, "boolean mask", m.Allow.Shape(), scores); err != nil {
			return in, err
		}
		in.nodes = append(in.nodes, m.Allow)
	}
	if m.Bias != nil {
		if in.known.BiasShape, err = fullMask(name, "bias", m.Bias.Shape(), scores); err != nil {
			return in, err
		}
		in.nodes = append(in.nodes, m.Bias)
	}
	return in, nil
}

// read is the mask with the values of its nodes.
func (m *maskInputs[F]) read(in []G.Value) (k kernel.Mask[F], err error) {
	k = m.known
	if m.Lengths != nil {
		if k.Lengths, err = elements[int](in[0], k.Shape[0]); err != nil {
			return k, err
		}
		for b, n := range k.Lengths {
			if n < 0 || n > k.Shape[3] {
				return k, fmt.Errorf("key length %d of batch element %d isn't between 0 and the %d keys there are", n, b, k.Shape[3])
			}
		}
		in = in[1:]
	}
	if m.Allow != nil {
		if k.Allow, err = elements[bool](in[0], size(k.AllowShape)); err != nil {
			return k, err
		}
		in = in[1:]
	}
	if m.Bias != nil {
		k.Bias, err = elements[F](in[0], size(k.BiasShape))
	}
	return k, err
}

func size(s [4]int) int { return s[0] * s[1] * s[2] * s[3] }
