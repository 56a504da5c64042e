package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// CountRight returns the number of correct targets and the number of counted targets: two scalars of dtype float64,
// without a gradient. Logits have shape (…, V); targets have dtype int and the same shape without V. A target is
// correct if it is the first class with the largest of its V logits, and none of these logits is NaN. A target below 0
// is not counted, and its logits are not read. A target of V or more is an error when the graph runs. The argument
// logits may instead be the predicted ids, of dtype int and the shape of targets.
//
// A target equal to the argument never is always wrong; −1 disables this rule. If whole is true, CountRight counts rows
// of targets along the first axis, not single targets. A row is correct if all its counted targets are correct. A row
// without counted targets is not counted.
func CountRight(e *Env, logits, targets *G.Node, never int, whole bool) (right, counted *G.Node, err error) {
	name := "accuracy"
	if whole {
		name = "exact match"
	}
	predicted := logits.Dtype() == tensor.Int && targets.Dtype() == tensor.Int && slices.Equal(logits.Shape(), targets.Shape())
	if !predicted {
		if err := checkTargets(name, "logits", "V", logits, targets); err != nil {
			return nil, nil, err
		}
	}
	size := 1 // number of targets per counted unit
	if whole {
		size = volume(targets.Shape()[1:])
	}
	n := volume(targets.Shape())
	answers := func(values []G.Value, _ []int) []int { return elements[int](values[0], n) }
	if !predicted {
		answers = ByDtype(logits, answersOf[float32], answersOf[float64])(e, logits.Shape())
	}
	return pair(e, name+fmt.Sprint(logits.Shape()), G.Nodes{logits, targets}, func(values []G.Value) (right, counted float64) {
		targets := elements[int](values[1], n)
		answers := answers(values, targets)
		for lo := 0; lo < n; lo += size {
			every, any := 1.0, 0.0
			for i, t := range targets[lo : lo+size] {
				if t >= 0 {
					any = 1
				}
				if t >= 0 && (t == never || t != answers[lo+i]) {
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
