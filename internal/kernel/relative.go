package kernel

// Relative describes scores of shape (B, H, T, S) and the distance of each key from each query. For query t of batch
// element b, key j is at distance j − Positions[b·T+t]; Positions holds B·T numbers from 0 to S−1. Buckets holds, for
// each distance from −(S−1) to S−1, the index of a row of the table of biases, whose shape is (rows, H).
type Relative struct {
	Heads, Keys        int
	Positions, Buckets []int
}

// RelativeBias sets bias, of shape (B, H, T, S), to the table's elements for the distances. It uses byDistance, of
// shape (H, 2S−1), as scratch.
func RelativeBias[F Float](cores int, bias, table, byDistance []F, batch int, r Relative) {
	distances, queries := len(r.Buckets), len(r.Positions)/batch
	for h := range r.Heads {
		for d, bucket := range r.Buckets {
			byDistance[h*distances+d] = table[bucket*r.Heads+h]
		}
	}
	runRanges(cores, batch*r.Heads*queries, rowsPerTask(r.Keys, 1), len(bias), func(lo, hi int) {
		for i := lo; i < hi; i++ { // row (b, h, t)
			t, h, b := i%queries, i/queries%r.Heads, i/queries/r.Heads
			first := h*distances + r.Keys - 1 - r.Positions[b*queries+t]
			copy(bias[i*r.Keys:][:r.Keys], byDistance[first:])
		}
	})
}

// RelativeBiasGrad sets dtable to the gradient of RelativeBias with respect to its table, where g is the gradient of
// bias.
func RelativeBiasGrad[F Float](cores int, dtable, g, byDistance []F, batch int, r Relative) {
	distances, queries := len(r.Buckets), len(r.Positions)/batch
	clear(dtable)
	clear(byDistance)
	runRanges(cores, r.Heads, 1, len(g), func(lo, hi int) {
		for h := lo; h < hi; h++ {
			sums := byDistance[h*distances:][:distances]
			for i, p := range r.Positions {
				b, t := i/queries, i%queries
				Axpy(sums[r.Keys-1-p:][:r.Keys], 1, g[((b*r.Heads+h)*queries+t)*r.Keys:][:r.Keys])
			}
			for d, bucket := range r.Buckets {
				dtable[bucket*r.Heads+h] += sums[d]
			}
		}
	})
}
