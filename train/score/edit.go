package score

// editDistance returns the least number of units to insert, delete or replace to make b of a (Levenshtein, 1966). It
// takes time in proportion to the product of their lengths, and memory to the shorter one: row is used if it suffices,
// and returned.
func editDistance[T comparable](a, b []T, row []int) (int, []int) {
	// What both begin and end with costs nothing.
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
		// row[j] is the distance of a[:i+1] and b[:j] up to j, of a[:i] and b[:j] beyond.
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

// ErrorRate adds up edits: of phonemes it is the phoneme error rate, of words the word error rate. Each answer counts
// beside its nearest reference, the one with the fewest edits, and of several such the longest.
type ErrorRate[T comparable] struct {
	Edits int // from the answers to the nearest references
	Units int // of the nearest references

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

// Value returns the edits for each unit of a reference, 0 where there is no unit. It can be above 1.
func (e *ErrorRate[T]) Value() float64 { return share(e.Edits, e.Units) }
