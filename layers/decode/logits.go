package decode

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// likeliest returns the token with the highest logit; of several, the one with the lowest id. A logit that is NaN or
// +Inf is an error, as are logits that are all −Inf.
func likeliest(logits []float64) (int, error) {
	best, high := -1, math.Inf(-1)
	for id, x := range logits {
		if math.IsNaN(x) || math.IsInf(x, 1) {
			return 0, fmt.Errorf("a logit must be finite, or -Inf for a token that is never chosen, got %v for token %d: look for such numbers in the model's weights", x, id)
		}
		if x > high {
			best, high = id, x
		}
	}
	if best < 0 {
		return 0, errors.New("every logit is -Inf, so that no token is possible: leave at least one logit finite")
	}
	return best, nil
}

// logProbs computes the logarithm of a softmax for one token at a time. Nothing overflows, and no result is above 0.
type logProbs struct {
	logits []float64
	high   float64 // the highest logit
	logSum float64 // the logarithm of the sum of exp(logit − high), which is at least 0
}

// newLogProbs makes the logProbs of logits whose likeliest token is best.
func newLogProbs(logits []float64, best int) logProbs {
	high, sum := logits[best], 0.0
	for _, x := range logits {
		sum += math.Exp(x - high)
	}
	return logProbs{logits, high, math.Log(sum)}
}

func (l logProbs) of(id int) float64 { return l.logits[id] - l.high - l.logSum }

// top returns the n tokens, at least 1, of the highest logits, from the highest down; of equal logits, the lowest id
// comes first. Tokens whose logit is −Inf are left out.
func top(logits []float64, n int) []int {
	n = min(n, len(logits))
	ids := make([]int, 0, n+1)
	for id, x := range logits {
		if math.IsInf(x, -1) || len(ids) == n && x <= logits[ids[n-1]] {
			continue
		}
		place := len(ids)
		for place > 0 && x > logits[ids[place-1]] {
			place--
		}
		ids = slices.Insert(ids, place, id)
		ids = ids[:min(len(ids), n)]
	}
	return ids
}

// ranking returns tokens one by one, from the highest logit down; of equal logits, the lowest id comes first. Tokens
// whose logit is −Inf are left out. It is a heap, as only a few of the tokens are asked for as a rule.
type ranking struct {
	logits []float64
	heap   []int // ids; the one at place i ranks above those at 2i+1 and 2i+2
}

func rank(logits []float64) *ranking {
	r := &ranking{logits: logits, heap: make([]int, 0, len(logits))}
	for id, x := range logits {
		if !math.IsInf(x, -1) {
			r.heap = append(r.heap, id)
		}
	}
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
	return r
}

// next returns the next token, and reports whether there is one.
func (r *ranking) next() (id int, ok bool) {
	if len(r.heap) == 0 {
		return 0, false
	}
	id, last := r.heap[0], len(r.heap)-1
	r.heap[0] = r.heap[last]
	r.heap = r.heap[:last]
	r.sink(0)
	return id, true
}

// sink moves the token at place i down to where it belongs.
func (r *ranking) sink(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.heap); child++ {
			if r.before(r.heap[child], r.heap[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		r.heap[i], r.heap[first] = r.heap[first], r.heap[i]
		i = first
	}
}

func (r *ranking) before(a, b int) bool {
	return r.logits[a] > r.logits[b] || r.logits[a] == r.logits[b] && a < b
}
