package score

import "github.com/heed-go/heed/internal/text"

// ErrorRate adds up edits. If the units are phonemes, it is the phoneme error rate; if they are words, the word error
// rate. Each answer is compared with the reference that needs the fewest edits; of several such references, with the
// longest.
type ErrorRate[T comparable] struct {
	Edits int // number of edits between the answers and their nearest references
	Units int // number of units in the nearest references

	row []int
}

// Add adds an answer.
func (e *ErrorRate[T]) Add(answer []T, references ...[]T) {
	edits, units := -1, 0
	for _, reference := range orEmpty(references) {
		var d int
		d, e.row = text.EditDistance(answer, reference, e.row)
		if edits < 0 || d < edits || d == edits && len(reference) > units {
			edits, units = d, len(reference)
		}
	}
	e.Edits += edits
	e.Units += units
}

// orEmpty returns references or, if there are none, one empty reference.
func orEmpty[T any](references []T) []T {
	if len(references) == 0 {
		return make([]T, 1)
	}
	return references
}

// Value returns the edits per unit of the references, which can be above 1. It returns 0 if the references have no
// units.
func (e *ErrorRate[T]) Value() float64 { return share(e.Edits, e.Units) }
