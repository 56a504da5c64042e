package rows

import (
	"slices"

	"github.com/heed-go/heed/data"
)

// buckets group the rows of a file by size. All rows of a bucket are padded to the same width, so there is one graph
// per bucket. The size of a row is the length of its source or, if greater, the length of its answer times the ratio of
// all sources' symbols to all answers' symbols.
type buckets struct {
	bounds            []int // largest size of each bucket
	sources, answers  int   // 1 plus the number of symbols in the sources and in the answers of all training rows
	maxLen, maxAnswer int
	format            Format
}

// mostBuckets is the greatest number of buckets.
const mostBuckets = 12

// newBuckets chooses the bounds with the least padding of the training rows.
func newBuckets(f Format, rule *data.Rule, trains, validates []lengths) *buckets {
	b := &buckets{maxLen: rule.MaxLen, maxAnswer: rule.MaxAnswer, format: f, sources: 1, answers: 1}
	for _, l := range trains {
		b.sources, b.answers = b.sources+int(l[0]), b.answers+int(l[1])
	}
	largest := 1
	for _, rows := range [][]lengths{trains, validates} {
		for _, l := range rows {
			largest = max(largest, b.size(l))
		}
	}
	counts := make([]int, largest+1)
	for _, l := range trains {
		counts[b.size(l)]++
	}
	b.bounds = Bounds(counts, min(mostBuckets, 1+len(trains)/1000))
	return b
}

// size returns a row's size. The rows of a bucket have at most the size of its bound.
func (b *buckets) size(l lengths) int {
	if b.format.Aligned { // each position of the source has one in the answer
		return int(l[0])
	}
	return max(int(l[0]), (int(l[1])*b.sources+b.answers-1)/b.answers)
}

// assign returns the bucket of each row.
func (b *buckets) assign(rows []lengths) []uint8 {
	assigned := make([]uint8, len(rows))
	for i, l := range rows {
		bucket, _ := slices.BinarySearch(b.bounds, b.size(l))
		assigned[i] = uint8(bucket)
	}
	return assigned
}

// widths returns the Len and the TargetLen of each bucket's batches.
func (b *buckets) widths() [][2]int {
	widths := make([][2]int, len(b.bounds))
	for i, bound := range b.bounds {
		widths[i][0] = min(bound, b.maxLen)
		switch {
		case b.format.Aligned:
			widths[i][1] = widths[i][0]
		case b.format.Sequences:
			widths[i][1] = min(bound*b.answers/b.sources, b.maxAnswer) + 1
		}
	}
	return widths
}

// Bounds returns up to n sizes in ascending order, with the least padding in total. The last one is the largest size. A
// row is padded to the first bound that isn't below its size. Element i of counts is the number of rows with size i.
func Bounds(counts []int, n int) []int {
	var sizes []int // sizes that may become a bound: at most about 256
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
	// least[j][i] is the least total width of the rows whose size is at most sizes[i], if there are j+1 bounds and the
	// last is sizes[i]. from[j][i] is the index of the bound before it.
	before := make([]int, len(sizes)) // number of rows with at most each size
	total, next := 0, 0
	for i, size := range sizes {
		for ; next <= size; next++ {
			total += counts[next]
		}
		before[i] = total
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
