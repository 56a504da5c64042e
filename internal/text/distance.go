package text

// EditDistance returns the smallest number of insertions, deletions and replacements that turn a into b (Levenshtein,
// 1966). It takes time in proportion to the product of the two lengths, and memory in proportion to the shorter length.
// It reuses row, and returns it for the next call.
func EditDistance[T comparable](a, b []T, row []int) (int, []int) {
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
