package metrics

import (
	"cmp"
	"slices"
)

// AveragePrecision returns the mean, over the right ones of some answers, of the share of right ones among the answers
// whose scores are at least as high. It is NaN without right ones.
func AveragePrecision[F float32 | float64](scores []F, right []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int { return cmp.Compare(scores[b], scores[a]) }
	slices.SortFunc(order, compare)
	found, sum := 0.0, 0.0
	for i := 0; i < len(order); {
		before, end := found, i
		for ; end < len(order) && compare(order[end], order[i]) == 0; end++ {
			if right[order[end]] {
				found++
			}
		}
		sum, i = sum+(found-before)*found/float64(end), end
	}
	return sum / found
}
