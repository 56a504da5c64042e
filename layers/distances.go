package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Distances are vectors of the distances between queries and keys, whose products with contents are added to the
// scores: see Disentangled. The distance is the query's position minus the key's. There are R = 2·Buckets rows, or
// 2·MaxDistance without Buckets. In the middle, row R/2, is distance 0; earlier rows are for keys after the query.
type Distances struct {
	Keys    *G.Node // (R, G·K): their products with the queries are added; nil for none
	Queries *G.Node // (R, H·K): their products with the keys are added; nil for none

	Buckets, MaxDistance int // see Disentangled, but MaxDistance has no default

	bare bool // whether both nodes hold vectors that aren't projected yet, of shape (R, D)
}

// ops returns d in the form of package ops.
func (d *Distances) ops() *ops.Distances {
	if d == nil {
		return nil
	}
	return &ops.Distances{Keys: d.Keys, Queries: d.Queries, DistanceBuckets: ops.DistanceBuckets{Buckets: d.Buckets, MaxDistance: d.MaxDistance}}
}

// products returns the number of products in a score with d.
func (d *Distances) products() int {
	n := 1
	for _, vectors := range []*G.Node{d.Keys, d.Queries} {
		if vectors != nil {
			n++
		}
	}
	return n
}
