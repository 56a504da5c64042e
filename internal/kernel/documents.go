package kernel

import "math"

// Documents says which keys of a row belong to one document. The query at position p belongs to the document of key p,
// and sees only this document's keys. A query at a position without a key sees no key. Call Set before use.
type Documents struct {
	numbers    []int // shape (B, S)
	keys       int   // S
	start, end []int // for each key: the first key of its document, and the key after its last one
	scattered  bool  // whether keys of other documents lie between the keys of one
}

// Set sets the number of each key's document, in rows of the given number of keys. Keys with the same number in a row
// are one document. Set keeps the slice, which must not change until the next call.
func (d *Documents) Set(numbers []int, keys int) {
	d.numbers, d.keys, d.scattered = numbers, keys, false
	d.start, d.end = grown(d.start, len(numbers)), grown(d.end, len(numbers))
	for row := 0; row < len(numbers); row += keys {
		d.setRow(row)
	}
}

// setRow sets start and end of the keys from index row on. A document whose keys adjoin needs no search.
func (d *Documents) setRow(row int) {
	end := row + d.keys
	rising := true // whether the numbers never fall, so each document is one run
	for i := row + 1; i < end; i++ {
		rising = rising && d.numbers[i-1] <= d.numbers[i]
	}
	if !rising {
		d.setScattered(row)
		return
	}
	for first := row; first < end; {
		last := first + 1
		for last < end && d.numbers[last] == d.numbers[first] {
			last++
		}
		for i := first; i < last; i++ {
			d.start[i], d.end[i] = first-row, last-row
		}
		first = last
	}
}

// setScattered does the work of setRow for numbers in any order.
func (d *Documents) setScattered(row int) {
	type document struct{ start, end, keys int }
	found := map[int]document{}
	for j, n := range d.numbers[row : row+d.keys] {
		f, known := found[n]
		if !known {
			f.start = j
		}
		found[n] = document{f.start, j + 1, f.keys + 1}
	}
	for j, n := range d.numbers[row : row+d.keys] {
		f := found[n]
		d.start[row+j], d.end[row+j] = f.start, f.end
		d.scattered = d.scattered || f.keys < f.end-f.start
	}
}

// cover returns the smallest range that contains the documents at the positions from p0 to p1 of batch element b. If
// there is no document, start is S and end is 0.
func (d *Documents) cover(b, p0, p1 int) (start, end int) {
	start = d.keys
	for p := max(0, p0); p < min(p1, d.keys); p++ {
		start, end = min(start, d.start[b*d.keys+p]), max(end, d.end[b*d.keys+p])
	}
	return start, end
}

// same reports whether the query at position p sees key j of batch element b.
func (d *Documents) same(b, p, j int) bool {
	return 0 <= p && p < d.keys && d.numbers[b*d.keys+p] == d.numbers[b*d.keys+j]
}

// overlap returns the part of the range from start to end that is also from lo to hi. It is empty, within the first
// range's limits 0 and end, if they don't overlap.
func overlap(start, end, lo, hi int) (int, int) {
	end = max(0, min(end, hi))
	return min(max(start, lo), end), end
}

// forbidOthers sets the scores of other documents' keys to −Inf. The query is at position p, and the keys begin at j0.
func forbidOthers[F Float](d *Documents, scores []F, b, p, j0 int) {
	for i := range scores {
		if !d.same(b, p, j0+i) {
			scores[i] = F(math.Inf(-1))
		}
	}
}
