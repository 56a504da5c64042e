package ops

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Softmax turns scores of shape (T, S), (B, T, S) or (B, H, T, S) into attention weights: the softmax over the keys
// that the mask allows. A masked key has weight zero, even if its score is NaN. If all keys are masked for a query, all
// its weights are zero. Errors during a run begin with layer.
func Softmax(e *Env, layer string, scores *G.Node, m Mask) (*G.Node, error) {
	const name = "softmax"
	if err := scoresNode(name, scores); err != nil {
		return nil, err
	}
	if err := m.Check(name, scores.Shape(), scores); err != nil {
		return nil, err
	}
	if scores.Dtype() == tensor.Float32 {
		return maskedOp(e, name, layer, scores, m, kernel.MaskedSoftmax[float32], kernel.SoftmaxGrad[float32])
	}
	return maskedOp(e, name, layer, scores, m, kernel.MaskedSoftmax[float64], kernel.SoftmaxGrad[float64])
}
