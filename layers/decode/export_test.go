package decode

import (
	"fmt"
	"math/rand/v2"
)

// Sample chooses a token. It draws one number from rng. If Temperature is 0, it draws no number, and rng may be nil.
func (s Sampler) Sample(logits []float64, rng *rand.Rand) (token int, err error) {
	defer prefix(&err)
	if err := s.Check(); err != nil {
		return 0, err
	}
	best, err := likeliest(logits)
	if err != nil {
		return 0, err
	}
	return s.sample(logits, best, rng), nil
}

// Probs returns the probability with which Sample chooses each token. Their sum is 1, except for rounding. Probs
// returns the same errors as Sample.
func (s Sampler) Probs(logits []float64) ([]float64, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	best, err := likeliest(logits)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	probs := make([]float64, len(logits))
	if s.Temperature == 0 {
		probs[best] = 1
		return probs, nil
	}
	ids, weights, total := s.weigh(logits, best)
	for i, w := range weights {
		probs[idOf(ids, i)] = w / total
	}
	return probs, nil
}

// Penalize applies the penalties to logits, in place: see penalize.
func (s Sampler) Penalize(logits []float64, prompt, generated []int) {
	s.penalize(logits, prompt, generated)
}
