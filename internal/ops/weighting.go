package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// A weighting holds how much each position of a loss counts, in the run that was last.
type weighting[F kernel.Float] struct {
	of     []F
	scales []F
	sum    float64
}

func newWeighting[F kernel.Float](positions int) *weighting[F] {
	return &weighting[F]{of: make([]F, positions), scales: make([]F, positions)}
}

// read takes the weights from an input; nil stands for 1 each. A weight that is negative, infinite or NaN is an error.
func (w *weighting[F]) read(in G.Value) error {
	if in == nil {
		for i := range w.of {
			w.of[i] = 1
		}
		return nil
	}
	from, err := elements[F](in, len(w.of))
	if err != nil {
		return err
	}
	for i, v := range from {
		if !(v >= 0 && !math.IsInf(float64(v), 1)) {
			return fmt.Errorf("the weight of position %d is %v: a weight must be finite and at least 0", i, v)
		}
	}
	copy(w.of, from)
	return nil
}

// total returns the sum of the weights over positions of width numbers each.
func (w *weighting[F]) total(width int) float64 {
	w.sum = 0
	for _, v := range w.of {
		w.sum += float64(v)
	}
	w.sum *= float64(width)
	return w.sum
}

// mean returns the weighted mean from the weighted sum over positions of width numbers each: 0 where all weights are 0.
func (w *weighting[F]) mean(sum float64, width int) float64 {
	if w.total(width) == 0 {
		return 0
	}
	return sum / w.sum
}

// gradient returns what each position's derivative is to be multiplied by, g being the derivative by the mean: 0 where
// the weight is 0, whatever g is.
func (w *weighting[F]) gradient(g F) []F {
	by := float64(g) / w.sum
	for i, v := range w.of {
		w.scales[i] = 0
		if v != 0 {
			w.scales[i] = F(by * float64(v))
		}
	}
	return w.scales
}
