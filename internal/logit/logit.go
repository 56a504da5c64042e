// Package logit has what packages that make or judge answers compute from the outputs of networks and linear models.
package logit

import (
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/layers/decode"
)

// Likeliest returns the class with the highest logit and the logarithm of its probability. If several logits are equal,
// it returns the first.
func Likeliest(logits []float32) (class int, logProb float64) {
	for i, x := range logits {
		if x > logits[class] {
			class = i
		}
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - logits[class]))
	}
	return class, -math.Log(sum)
}

// Probabilities returns the probability of each class. There must be at least one.
func Probabilities[F float32 | float64](logits []F) []float64 {
	p, highest, sum := make([]float64, len(logits)), slices.Max(logits), 0.0
	for i, x := range logits {
		p[i] = math.Exp(float64(x - highest))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Logistic returns the probability whose logit is x.
func Logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// LogProb returns the logarithm of the probability of a class.
func LogProb(logits []float32, class int) float64 {
	best, logProb := Likeliest(logits)
	return float64(logits[class]-logits[best]) + logProb
}

// CheckFinite returns an error that wraps decode.ErrNotFinite if a number that a model has computed is NaN or infinite.
func CheckFinite[F float32 | float64](values ...F) error {
	for _, x := range values {
		if x-x != 0 {
			return fmt.Errorf("the model's output is %v, which is no answer: %w", x, decode.ErrNotFinite)
		}
	}
	return nil
}
