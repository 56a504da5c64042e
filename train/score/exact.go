package score

import "slices"

// Exact counts the answers that are one of their references to the byte.
type Exact struct {
	Right int // answers that are
	All   int // answers
}

// Add adds an answer.
func (e *Exact) Add(answer string, references ...string) {
	e.All++
	if slices.Contains(references, answer) || len(references) == 0 && answer == "" {
		e.Right++
	}
}

// Value returns the share of answers that are right, 0 of none.
func (e *Exact) Value() float64 { return share(e.Right, e.All) }

// share returns a part of all, 0 of none.
func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
