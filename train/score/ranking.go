package score

// Ranking scores searches, in each of which one answer is right, by the rank of the right answer. It keeps all ranks in
// memory. Without ranks, the scores are NaN.
type Ranking struct{ ranks []int }

// Add adds the rank of a right answer: 1 if it comes first.
func (r *Ranking) Add(rank int) { r.ranks = append(r.ranks, rank) }

// MRR returns the mean reciprocal rank, from 0 to 1: the mean of 1/rank.
func (r *Ranking) MRR() float64 {
	sum := 0.0
	for _, rank := range r.ranks {
		sum += 1 / float64(rank)
	}
	return sum / float64(len(r.ranks))
}

// Recall returns the share of searches whose right answer is among the first n, from 0 to 1.
func (r *Ranking) Recall(n int) float64 {
	found := 0
	for _, rank := range r.ranks {
		if rank <= n {
			found++
		}
	}
	return float64(found) / float64(len(r.ranks))
}
