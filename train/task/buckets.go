package task

import "slices"

// buckets are the few widths that the rows of a file are padded to: each is a graph. A row's size is what its source
// has, or what its answer has if that is more, on the scale of sources.
type buckets struct {
	bounds            []int // the largest size in each
	sources, answers  int   // symbols of all rows: the scale of either side
	maxLen, maxAnswer int
	kind              Kind
}

// mostBuckets is how many there are at most.
const mostBuckets = 12

// newBuckets chooses the bounds by which the training rows are padded least.
func newBuckets(c *Config, trains, validates []lengths) *buckets {
	b := &buckets{maxLen: c.Task.MaxLen, maxAnswer: c.Task.MaxAnswer, kind: c.Kind(), sources: 1, answers: 1}
	for _, l := range trains {
		b.sources, b.answers = b.sources+int(l[0]), b.answers+int(l[1])
	}
	largest := 1
	for _, all := range [][]lengths{trains, validates} {
		for _, l := range all {
			largest = max(largest, b.size(l))
		}
	}
	counts := make([]int, largest+1)
	for _, l := range trains {
		counts[b.size(l)]++
	}
	b.bounds = bounds(counts, min(mostBuckets, 1+len(trains)/1000))
	return b
}

// size returns a row's size, of which every row of a bucket has the bucket's bound at most.
func (b *buckets) size(l lengths) int {
	return max(int(l[0]), (int(l[1])*b.sources+b.answers-1)/b.answers)
}

// of returns the bucket of each row.
func (b *buckets) of(all []lengths) []uint8 {
	of := make([]uint8, len(all))
	for i, l := range all {
		at, _ := slices.BinarySearch(b.bounds, b.size(l))
		of[i] = uint8(at)
	}
	return of
}

// widths returns the Len and the TargetLen of each bucket's batches.
func (b *buckets) widths() [][2]int {
	widths := make([][2]int, len(b.bounds))
	for i, bound := range b.bounds {
		widths[i][0] = min(bound, b.maxLen)
		switch {
		case b.kind.aligned:
			widths[i][1] = widths[i][0]
		case b.kind.Sequences:
			widths[i][1] = min(bound*b.answers/b.sources, b.maxAnswer) + 1
		}
	}
	return widths
}

// bounds returns up to n sizes, in order and the last the largest, for which all rows are padded least in sum: each is
// padded to the first that it isn't above. counts has how many rows there are of each size.
func bounds(counts []int, n int) []int {
	var sizes []int // that a bound may be: where there are many, not all
	rows, step := 0, 0
	for _, c := range counts {
		step += c
	}
	step = step/256 + 1
	for size, c := range counts {
		if rows += c; rows >= step && size > 0 {
			sizes, rows = append(sizes, size), 0
		}
	}
	if last := len(counts) - 1; len(sizes) == 0 || sizes[len(sizes)-1] != last {
		sizes = append(sizes, last)
	}
	// least[j][i] is the least that the rows of sizes up to sizes[i] take with j+1 bounds, from[j][i] the place of the
	// bound before the last.
	before := make([]int, len(sizes)) // rows up to each
	for i, at := 0, 0; i < len(sizes); i++ {
		if i > 0 {
			before[i] = before[i-1]
		}
		for ; at <= sizes[i]; at++ {
			before[i] += counts[at]
		}
	}
	n = min(n, len(sizes))
	least, from := make([][]int, n), make([][]int, n)
	for j := range n {
		least[j], from[j] = make([]int, len(sizes)), make([]int, len(sizes))
		for i := range sizes {
			least[j][i], from[j][i] = before[i]*sizes[i], -1
			for k := 0; j > 0 && k < i; k++ {
				if take := least[j-1][k] + (before[i]-before[k])*sizes[i]; take < least[j][i] {
					least[j][i], from[j][i] = take, k
				}
			}
		}
	}
	var chosen []int
	for j, i := n-1, len(sizes)-1; i >= 0; j-- {
		chosen = append(chosen, sizes[i])
		i = from[j][i]
	}
	slices.Reverse(chosen)
	return chosen
}
