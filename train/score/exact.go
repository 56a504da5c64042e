package score

import "slices"

// Exact counts the answers that are equal to one of their references, byte by byte.
type Exact struct {
	Right int // answers that are equal to a reference
	All   int // all answers
}

// Add adds an answer.
func (e *Exact) Add(answer string, references ...string) {
	e.All++
	if slices.Contains(references, answer) || len(references) == 0 && answer == "" {
		e.Right++
	}
}

// Value returns the share of answers that are right, or 0 if there are none.
func (e *Exact) Value() float64 { return share(e.Right, e.All) }

// share returns part divided by all, or 0 if all is 0.
func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
