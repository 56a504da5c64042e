package ops

import (
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// A weighting holds the weights of a loss's positions, for the current run.
type weighting[F kernel.Float] struct {
	values []F
	scales []F
	sum    float64
}

func newWeighting[F kernel.Float](positions int) *weighting[F] {
	return &weighting[F]{values: make([]F, positions), scales: make([]F, positions)}
}

// read reads the weights from the op's input with the given index. If there is none, each weight is 1. A negative,
// infinite or NaN weight is an error.
func (w *weighting[F]) read(values []G.Value, input int) {
	for i := range w.values {
		w.values[i] = 1
	}
	for i, v := range optional[F](values, input, len(w.values)) {
		if !(v >= 0 && !math.IsInf(float64(v), 1)) {
			fail("the weight of position %d is %v: a weight must be finite and at least 0", i, v)
		}
		w.values[i] = v
	}
}

// total returns the sum of the weights, multiplied by width, the number of outputs per position.
func (w *weighting[F]) total(width int) float64 {
	w.sum = 0
	for _, v := range w.values {
		w.sum += float64(v)
	}
	w.sum *= float64(width)
	return w.sum
}

// mean divides sum, the weighted sum over all outputs, by total(width). It returns 0 if all weights are 0.
func (w *weighting[F]) mean(sum float64, width int) float64 {
	if w.total(width) == 0 {
		return 0
	}
	return sum / w.sum
}

// gradient returns the factor of each position's derivative, for the derivative g of the mean. If a weight is 0, the
// factor is 0, even if g is NaN.
func (w *weighting[F]) gradient(g F) []F {
	by := float64(g) / w.sum
	for i, v := range w.values {
		w.scales[i] = 0
		if v != 0 {
			w.scales[i] = F(by * float64(v))
		}
	}
	return w.scales
}
