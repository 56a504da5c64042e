package ops

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Softmax turns scores of shape (T, S), (B, T, S) or (B, H, T, S) into attention weights: the softmax over the keys
// that the mask allows. A masked key has weight zero, even if its score is NaN. If all keys are masked for a query, all
// its weights are zero. Errors during a run begin with layer.
func Softmax(e *Env, layer string, scores *G.Node, m Mask) (*G.Node, error) {
	return ByDtype(scores, softmax[float32], softmax[float64])(e, layer, scores, m)
}

func softmax[F kernel.Float](e *Env, layer string, scores *G.Node, m Mask) (*G.Node, error) {
	return maskedOp(e, "softmax", layer, scores, m, kernel.MaskedSoftmax[F], kernel.SoftmaxGrad[F])
}
