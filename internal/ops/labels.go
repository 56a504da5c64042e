package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// LabelSums returns a vector of dtype float64, without a gradient, for logits (B, V) of V labels that don't exclude
// each other: the number of rows with exactly the right labels, the number of rows, then for each label the number of
// right answers, and then for each label the number of answers and targets. A label is in the answer if its logit is at
// least 0. Weights have the shape (B); rows with weight 0 don't count, and all other weights count the same. Otherwise,
// inputs and errors are the same as in SumDistance for binary cross-entropy.
func LabelSums(e *Env, logits, targets, weights *G.Node) (*G.Node, error) {
	const name = "label sums"
	s := logits.Shape()
	if len(s) != 2 {
		return nil, fmt.Errorf("%s: the logits must have shape (B, V), got %v", name, s)
	}
	v, wrong := s[1], false
	return sumVector(e, name, kernel.RightSide, logits, targets, weights, 2+2*v, func(sums []float64, i int, x, t, _ float64) {
		label, answer, right := i%v, x >= 0, t > 0.5
		wrong = wrong && label > 0 || answer != right
		if answer && right {
			sums[2+label]++
		}
		for _, yes := range []bool{answer, right} {
			if yes {
				sums[2+v+label]++
			}
		}
		if label == v-1 {
			if sums[1]++; !wrong {
				sums[0]++
			}
		}
	})
}
