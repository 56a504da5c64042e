package decode

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/internal/kernel"
)

// ErrNotFinite means that a model has no answer, because it computed a NaN or an infinity.
var ErrNotFinite = errors.New("the model's weights are damaged, or so large that its sums overflow: restore them, or train with a lower learning rate")

// highest returns the highest logit. It returns an error that wraps ErrNotFinite if a logit is NaN or +Inf. A token
// whose logit is −Inf is never chosen.
func highest(logits []float64) (float64, error) {
	high := kernel.MaxOf(logits)
	if math.IsNaN(high) || math.IsInf(high, 1) {
		id := slices.IndexFunc(logits, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 1) })
		return 0, fmt.Errorf("a logit must be finite, or -Inf for a token that is never chosen, got %v for token %d: %w", logits[id], id, ErrNotFinite)
	}
	return high, nil
}

// likeliest returns the token with the highest logit. Among equal logits, it returns the lowest id. It returns an error
// of highest, or if all logits are −Inf.
func likeliest(logits []float64) (int, error) {
	high, err := highest(logits)
	if err != nil {
		return 0, err
	}
	if math.IsInf(high, -1) {
		return 0, errors.New("every logit is -Inf, so no token can be chosen: at least one logit must be finite")
	}
	return slices.Index(logits, high), nil
}

// logProbs computes the logarithm of a softmax for single tokens. It doesn't overflow, and no result is above 0.
type logProbs struct {
	logits []float64
	high   float64 // the highest logit
	logSum float64 // the logarithm of the sum of exp(logit − high), which is at least 0
}

// newLogProbs makes logProbs from logits. The argument best is their likeliest token.
func newLogProbs(logits []float64, best int) logProbs {
	high := logits[best]
	return logProbs{logits, high, math.Log(kernel.ExpSum(logits, high))}
}

func (l logProbs) of(id int) float64 { return l.logits[id] - l.high - l.logSum }

// top returns the n tokens with the highest logits, highest first, or fewer if there are fewer with a logit of at least
// least. Among equal logits, the lowest id comes first. Tokens whose logit is −Inf are left out. The number n must be
// at least 1.
func top(logits []float64, n int, least float64) []int {
	order := func(a, b int) int { return cmp.Or(cmp.Compare(logits[b], logits[a]), a-b) }
	n = min(n, len(logits))
	ids, below := []int{}, math.Inf(-1) // a token that isn't above below isn't among the first n
	for id, x := range logits {
		if x < least || x <= below {
			continue
		}
		ids = append(ids, id)
		if len(ids) >= 4*n {
			slices.SortFunc(ids, order)
			ids = ids[:n]
			below = logits[ids[n-1]]
		}
	}
	slices.SortFunc(ids, order)
	return ids[:min(n, len(ids))]
}
