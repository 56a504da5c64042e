package decode

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// likeliest returns the token with the highest logit. Among equal logits, it returns the lowest id. It returns an error
// if a logit is NaN or +Inf, or if all logits are −Inf.
func likeliest(logits []float64) (int, error) {
	best, high := -1, math.Inf(-1)
	for id, x := range logits {
		if math.IsNaN(x) || math.IsInf(x, 1) {
			return 0, fmt.Errorf("a logit must be finite, or -Inf for a token that is never chosen, got %v for token %d: check the model's weights for NaN and infinities", x, id)
		}
		if x > high {
			best, high = id, x
		}
	}
	if best < 0 {
		return 0, errors.New("every logit is -Inf, so no token can be chosen: at least one logit must be finite")
	}
	return best, nil
}

// logProbs computes the logarithm of a softmax for single tokens. It doesn't overflow, and no result is above 0.
type logProbs struct {
	logits []float64
	high   float64 // the highest logit
	logSum float64 // the logarithm of the sum of exp(logit − high), which is at least 0
}

// newLogProbs makes logProbs from logits. The argument best is their likeliest token.
func newLogProbs(logits []float64, best int) logProbs {
	high, sum := logits[best], 0.0
	for _, x := range logits {
		sum += math.Exp(x - high)
	}
	return logProbs{logits, high, math.Log(sum)}
}

func (l logProbs) of(id int) float64 { return l.logits[id] - l.high - l.logSum }

// top returns up to n tokens, the first ones in the order of ranked. The number n must be at least 1.
func top(logits []float64, n int) (ids []int) {
	for id := range ranked(logits) {
		if ids = append(ids, id); len(ids) == n {
			break
		}
	}
	return ids
}

// ranked yields tokens one by one, highest logit first. Among equal logits, the lowest id comes first. Tokens whose
// logit is −Inf are left out.
func ranked(logits []float64) iter.Seq[int] {
	return func(yield func(id int) bool) {
		r := &ranking{logits: logits, heap: make([]int, 0, len(logits))}
		for id, x := range logits {
			if !math.IsInf(x, -1) {
				r.heap = append(r.heap, id)
			}
		}
		for i := len(r.heap)/2 - 1; i >= 0; i-- {
			r.sink(i)
		}
		for len(r.heap) > 0 && yield(r.heap[0]) {
			last := len(r.heap) - 1
			r.heap[0] = r.heap[last]
			r.heap = r.heap[:last]
			r.sink(0)
		}
	}
}

// ranking holds tokens in a heap, because usually only a few tokens are needed.
type ranking struct {
	logits []float64
	heap   []int // ids; heap[i] ranks above heap[2i+1] and heap[2i+2]
}

// sink moves heap[i] down until the heap is in order.
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
