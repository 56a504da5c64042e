package score

// editDistance returns the smallest number of insertions, deletions and replacements that turn a into b (Levenshtein,
// 1966). It takes time in proportion to the product of the two lengths, and memory in proportion to the shorter length.
// It reuses row, and returns it for the next call.
func editDistance[T comparable](a, b []T, row []int) (int, []int) {
	// A common beginning and a common end need no edits.
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	row = row[:0]
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i, x := range a {
		// Up to the current j, row[j] is the distance between a[:i+1] and b[:j]; beyond it, between a[:i] and b[:j].
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			replaced := diagonal
			if x != y {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)], row
}

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
	if len(references) == 0 {
		references = [][]T{nil}
	}
	edits, units := -1, 0
	for _, reference := range references {
		var d int
		d, e.row = editDistance(answer, reference, e.row)
		if edits < 0 || d < edits || d == edits && len(reference) > units {
			edits, units = d, len(reference)
		}
	}
	e.Edits += edits
	e.Units += units
}

// Value returns the edits per unit of the references, which can be above 1. It returns 0 if the references have no
// units.
func (e *ErrorRate[T]) Value() float64 { return share(e.Edits, e.Units) }
