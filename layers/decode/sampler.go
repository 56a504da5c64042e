package decode

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/heed-go/heed/internal/setting"
)

// A Sampler chooses a token from logits. It never chooses a token whose logit is −Inf. The zero Sampler is greedy: it
// chooses the likeliest token. With a Temperature above 0, it draws a token at random. Three steps compute the
// probabilities:
//
//  1. Softmax turns the logits, divided by Temperature, into probabilities.
//  2. The TopK likeliest tokens are kept. Their probabilities are divided by their sum.
//  3. The likeliest tokens are kept until their total probability is at least TopP. Their probabilities are again
//     divided by their sum (nucleus sampling: Holtzman et al., 2019).
//
// Among equal logits, the lowest id comes first.
type Sampler struct {
	Temperature float64 `json:"temperature"` // 0 for the likeliest token, 1 for the model's own probabilities
	TopK        int     `json:"top_k"`       // number of tokens to draw from, 0 for all; needs a Temperature
	TopP        float64 `json:"top_p"`       // total probability to draw from, 0 or 1 for all; a value between them needs a Temperature
}

// Sample chooses a token. It draws one number from rng. If Temperature is 0, it draws no number, and rng may be nil.
//
// Sample returns an error if the Sampler is invalid, if a logit is NaN or +Inf, or if all logits are −Inf.
func (s Sampler) Sample(logits []float64, rng *rand.Rand) (token int, err error) {
	defer prefix(&err)
	if err := s.Check(); err != nil {
		return 0, err
	}
	token, _, err = s.sample(logits, rng)
	return token, err
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
	total := s.weigh(probs, logits, best)
	for i := range probs {
		probs[i] /= total
	}
	return probs, nil
}

// Check returns an error if the Sampler is invalid. Errors use the fields' JSON names.
func (s Sampler) Check() error {
	const temperature, topK, topP = setting.Path("temperature"), setting.Path("top_k"), setting.Path("top_p")
	if s.Temperature == 0 && (s.TopK > 0 || s.TopP > 0 && s.TopP < 1) {
		return setting.Errorf("%s and %s need a %s above 0, got %d and %v: leave out both, or set another %s", topK, topP, temperature, s.TopK, s.TopP, temperature)
	}
	return cmp.Or(
		setting.In(temperature, s.Temperature, s.Temperature >= 0 && s.Temperature <= math.MaxFloat64, "finite and at least 0"),
		setting.In(topK, s.TopK, s.TopK >= 0, "at least 1, or 0 for all"),
		setting.In(topP, s.TopP, s.TopP >= 0 && s.TopP <= 1, "from 0 to 1"),
	)
}

// sample chooses a token, and returns its log probability without Temperature, TopK and TopP.
func (s Sampler) sample(logits []float64, rng *rand.Rand) (token int, logProb float64, err error) {
	best, err := likeliest(logits)
	if err != nil {
		return 0, 0, err
	}
	token = best
	if s.Temperature > 0 {
		weights := make([]float64, len(logits))
		token = pick(weights, s.weigh(weights, logits, best)*rng.Float64())
	}
	return token, newLogProbs(logits, best).of(token), nil
}

// weigh sets weights to the unnormalised probabilities of the tokens, where the likeliest token has 1, and returns
// their sum. All weights must be 0 before the call.
func (s Sampler) weigh(weights, logits []float64, best int) (total float64) {
	weight := func(id int) float64 { return math.Exp((logits[id] - logits[best]) / s.Temperature) }
	if s.all(len(logits)) {
		for id := range weights {
			weights[id] = weight(id)
		}
	} else {
		for _, id := range s.keep(logits, weight) {
			weights[id] = weight(id)
		}
	}
	return sum(weights)
}

// all reports whether TopK and TopP keep all tokens.
func (s Sampler) all(tokens int) bool {
	return (s.TopK == 0 || s.TopK >= tokens) && (s.TopP == 0 || s.TopP == 1)
}

// keep returns the tokens that TopK and TopP keep, likeliest first.
func (s Sampler) keep(logits []float64, weight func(id int) float64) (kept []int) {
	limit := len(logits)
	if s.TopK > 0 {
		limit = min(limit, s.TopK)
	}
	enough := math.Inf(1)
	if s.TopP > 0 && s.TopP < 1 {
		enough = s.TopP * massOf(logits, limit, weight)
	}
	mass := 0.0
	for id := range ranked(logits) {
		kept = append(kept, id)
		if mass += weight(id); len(kept) == limit || mass >= enough {
			break
		}
	}
	return kept
}

// massOf returns the total weight of the n likeliest tokens.
func massOf(logits []float64, n int, weight func(id int) float64) (mass float64) {
	if n == len(logits) { // no need to rank them
		for id := range logits {
			mass += weight(id)
		}
		return mass
	}
	for _, id := range top(logits, n) {
		mass += weight(id)
	}
	return mass
}

// pick returns the first token at which the running sum of weights exceeds x.
func pick(weights []float64, x float64) int {
	token, up := 0, 0.0
	for id, w := range weights {
		if w == 0 {
			continue
		}
		token = id
		if up += w; x < up {
			break
		}
	}
	return token // the last possible token if x was rounded up to the sum
}

func sum(xs []float64) (total float64) {
	for _, x := range xs {
		total += x
	}
	return total
}
