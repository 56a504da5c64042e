package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// SumAnswers returns a vector of n sums of dtype float64, without a gradient. Logits have shape (…, V); targets have
// dtype int and the same shape without V. When the graph runs, the sums start at 0, and add is called for each row
// along the first axis of targets. It gets the row's targets and its answers: the class with the largest of the V
// logits, the first one if there are several, or −1 if a logit is NaN. Where the target is below 0, the logits are not
// read, and the answer is −1 too. A target of V or more is an error when the graph runs.
//
// The name, which is also the name in errors, stands for add: with the same name and inputs, add must be the same.
func SumAnswers(e *Env, name string, logits, targets *G.Node, n int, add func(sums []float64, answers, targets []int)) (*G.Node, error) {
	if err := checkTargets(name, "logits", "V", logits, targets); err != nil {
		return nil, err
	}
	return ByDtype(logits, sumAnswers[float32], sumAnswers[float64])(e, name, logits, targets, n, add)
}

func sumAnswers[F kernel.Float](e *Env, name string, logits, targets *G.Node, n int, add func(sums []float64, answers, targets []int)) (*G.Node, error) {
	size := volume(targets.Shape()[1:]) // targets per row
	answersOf := answersOf[F](e, logits.Shape())
	o := newOp(fmt.Sprint(name, logits.Shape(), n), tensor.Shape{n}, func(sums []float64, values []G.Value) {
		targets := elements[int](values[1], volume(targets.Shape()))
		answers := answersOf(values, targets)
		clear(sums)
		for lo := 0; lo < len(targets); lo += size {
			add(sums, answers[lo:lo+size], targets[lo:lo+size])
		}
	})
	return e.apply(o, logits, targets)
}

// answersOf returns a function that returns the answers of SumAnswers for values[0], logits of the given shape. The
// next call overwrites them.
func answersOf[F kernel.Float](e *Env, logits tensor.Shape) func(values []G.Value, targets []int) []int {
	n, vocab := rows(logits)
	answers := make([]int, n)
	return func(values []G.Value, targets []int) []int {
		logits := elements[F](values[0], n*vocab)
		for i, t := range targets {
			if t >= vocab {
				failClass(t, i, vocab)
			}
			answers[i] = max(t, -1)
		}
		kernel.Largest(e.Cores, answers, logits, vocab)
		return answers
	}
}
