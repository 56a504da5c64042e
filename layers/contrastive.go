package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Contrastive returns the logits and the targets whose CrossEntropy is the loss InfoNCE (van den Oord et al., 2018),
// with the other texts of the batch as negatives. The vectors have shape (B·K, D): for each of B examples, in this
// order, a query, its positive, and K−2 hard negatives, with K of at least 2. The logits (B, B·K) are the dot products
// of each query with all vectors, divided by the temperature, from 1e-30 to 1e15. After Normalize, they are cosines. A
// small temperature such as 0.05 weighs the nearest negatives most. The targets (B), of dtype tensor.Int, are the
// indices of the positives, so train.Accuracy is the share of queries whose positive is nearest.
//
// The texts, of dtype tensor.Int and shape (B, K), say which texts are equal: equal texts have equal numbers, from 0. A
// text that equals a query or its positive isn't a negative of the query. Queries aren't negatives at all. A negative
// number means that there is no such text, as in a batch with fewer examples. It is no negative either, and an example
// without a query or a positive has the target Ignore. Logits that don't count are −Inf and have no gradient.
//
// Only the vectors have a gradient.
func Contrastive(b *Build, vectors, texts *G.Node, temperature float64) (logits, targets *G.Node, err error) {
	return ops.Contrastive(b.Env(), vectors, texts, temperature)
}
