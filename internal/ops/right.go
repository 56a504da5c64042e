package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// CountRight returns the number of correct targets and the number of counted targets: two scalars of dtype float64,
// without a gradient. Logits have shape (…, V); targets have dtype int and the same shape without V. A target is
// correct if it is the first class with the largest of its V logits, and none of these logits is NaN. A target below 0
// is not counted, and its logits are not read. A target of V or more is an error when the graph runs.
//
// A target equal to the argument never is always wrong; −1 disables this rule. If whole is true, CountRight counts rows
// of targets along the first axis, not single targets. A row is correct if all its counted targets are correct. A row
// without counted targets is not counted.
func CountRight(e *Env, logits, targets *G.Node, never int, whole bool) (right, counted *G.Node, err error) {
	name := "accuracy"
	if whole {
		name = "exact match"
	}
	if err := checkTargets(name, logits, targets); err != nil {
		return nil, nil, err
	}
	size := 1 // number of targets per counted unit
	if whole {
		size = volume(targets.Shape()[1:])
	}
	return byDtype(logits, countRight[float32], countRight[float64])(e, name, logits, targets, never, size)
}

func countRight[F kernel.Float](e *Env, name string, logits, targets *G.Node, never, size int) (right, counted *G.Node, err error) {
	n, vocab := rows(logits.Shape())
	marks := make([]F, n)
	return pair(e, name+fmt.Sprint(logits.Shape()), G.Nodes{logits, targets}, func(values []G.Value) (right, counted float64) {
		logits := elements[F](values[0], n*vocab)
		targets := elements[int](values[1], n)
		for i, t := range targets {
			if t >= vocab {
				failClass(t, i, vocab)
			}
		}
		kernel.Right(e.Cores, marks, logits, targets, vocab)
		for lo := 0; lo < n; lo += size {
			every, any := 1.0, 0.0
			for i, t := range targets[lo : lo+size] {
				if t >= 0 {
					any = 1
				}
				if t >= 0 && (t == never || marks[lo+i] == 0) {
					every = 0
				}
			}
			right += every * any
			counted += any
		}
		return right, counted
	})
}

// pair adds an op that computes two scalars of dtype float64, without a gradient.
func pair(e *Env, name string, inputs G.Nodes, compute func(values []G.Value) (first, second float64)) (first, second *G.Node, err error) {
	nodes, err := joint(e, name, []bool{true, true}, []tensor.Shape{tensor.ScalarShape(), tensor.ScalarShape()}, inputs, nil, nil, func(out [][]float64, values []G.Value) {
		out[0][0], out[1][0] = compute(values)
	})
	if err != nil {
		return nil, nil, err
	}
	return nodes[0], nodes[1], nil
}
