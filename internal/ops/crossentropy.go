package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// CrossEntropy returns the mean over positions of −log softmax(logits)[target], in nats: logits have shape (…, V),
// targets the same without the last axis and dtype int. A target below 0 is ignored: it counts neither in the sum nor
// in the mean, and its logits are not read. With every target ignored the loss is 0.
//
// A share of every target, smoothing, is spread evenly over the V classes: the mean is of −Σ q·log softmax(logits) with
// q = (1 − smoothing)·onehot(target) + smoothing/V (Szegedy et al., 2016). It is an error if smoothing isn't from 0 to
// 1.
func CrossEntropy(e *Env, logits, targets *G.Node, smoothing float64) (*G.Node, error) {
	const name = "cross-entropy"
	if err := CheckFloat(name, "the logits", logits); err != nil {
		return nil, err
	}
	if targets == nil {
		return nil, fmt.Errorf("%s: targets is nil", name)
	}
	s := logits.Shape()
	if len(s) < 2 || targets.Dtype() != tensor.Int || !slices.Equal(s[:len(s)-1], targets.Shape()) {
		return nil, fmt.Errorf("%s: the targets must be int, one for each row of the logits of shape %v, got %v of %v", name, s, targets.Shape(), targets.Dtype())
	}
	if !(smoothing >= 0 && smoothing <= 1) {
		return nil, fmt.Errorf("%s: the label smoothing must be from 0 to 1, got %v", name, smoothing)
	}
	if logits.Dtype() == tensor.Float32 {
		return crossEntropy[float32](e, logits, targets, smoothing)
	}
	return crossEntropy[float64](e, logits, targets, smoothing)
}

func crossEntropy[F kernel.Float](e *Env, logits, targets *G.Node, smoothing float64) (*G.Node, error) {
	shape := logits.Shape()
	n, vocab := rows(shape)
	losses := make([]F, n) // of each position
	logSums := make([]float64, n)
	counted := 0 // positions with a target

	attrs := fmt.Sprint(shape)
	if smoothing > 0 {
		attrs += fmt.Sprintf(" smoothed by %v", smoothing)
	}
	o := &op{
		name: "cross-entropy" + attrs, shape: tensor.ScalarShape(), out: dtypeOf[F](),
		run: func(in []G.Value) (G.Value, error) {
			logits, err := elements[F](in[0], n*vocab)
			if err != nil {
				return nil, err
			}
			targets, err := elements[int](in[1], n)
			if err != nil {
				return nil, err
			}
			counted = 0
			for i, t := range targets {
				if t >= vocab {
					return nil, fmt.Errorf("target %d at position %d isn't one of %d classes (a target below 0 is ignored)", t, i, vocab)
				}
				if t >= 0 {
					counted++
				}
			}
			kernel.SmoothCrossEntropy(e.Cores, losses, logSums, logits, targets, vocab, F(smoothing))
			var sum float64
			for _, l := range losses {
				sum += float64(l)
			}
			if counted > 0 {
				sum /= float64(counted)
			}
			return scalar(F(sum)), nil
		},
		diff: []bool{true, false},
	}
	o.grad = func(in G.Nodes, out, g *G.Node) (G.Nodes, error) {
		d := newOp("cross-entropy.dlogits"+attrs, shape, func(d []F, in []G.Value) error {
			logits, err := elements[F](in[0], n*vocab)
			if err != nil {
				return err
			}
			targets, err := elements[int](in[1], n)
			if err != nil {
				return err
			}
			g, err := elements[F](in[2], 1)
			if err != nil {
				return err
			}
			kernel.SmoothCrossEntropyGrad(e.Cores, d, logSums, logits, targets, vocab, F(smoothing), g[0]/F(max(counted, 1)))
			return nil
		})
		// The loss is an input so that it has run: logSums and counted are its.
		nd, err := e.apply(d, in[0], in[1], g, out)
		return G.Nodes{nd, nil}, err
	}
	return e.apply(o, logits, targets)
}

// scalar returns a Gorgonia scalar of dtype F.
func scalar[F kernel.Float](x F) G.Value {
	if x32, ok := any(x).(float32); ok {
		return G.NewF32(x32)
	}
	return G.NewF64(float64(x))
}
