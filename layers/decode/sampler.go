package decode

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/setting"
)

// A Sampler chooses a token from logits. It never chooses a token whose logit is −Inf. The zero Sampler is greedy: it
// chooses the likeliest token. With a Temperature above 0, it draws a token at random. These steps compute the
// probabilities. Their order and results are those of the transformers library:
//
//  1. The penalties change the logits of tokens that the sequence already has, the RepetitionPenalty first. A greedy
//     Sampler has penalties too.
//  2. Softmax turns the logits, divided by Temperature, into probabilities.
//  3. The TopK likeliest tokens are kept. Their probabilities are divided by their sum.
//  4. The likeliest tokens are kept until their total probability is at least TopP. Their probabilities are again
//     divided by their sum (nucleus sampling: Holtzman et al., 2019).
//  5. Tokens with at least MinP times the probability of the likeliest token are kept, and divided by their sum (Nguyen
//     et al., 2024).
//
// Among equal logits, the lowest id comes first.
type Sampler struct {
	Temperature float64 `json:"temperature"` // 0 for the likeliest token, 1 for the model's own probabilities
	TopK        int     `json:"top_k"`       // number of tokens to draw from, 0 for all; needs a Temperature
	TopP        float64 `json:"top_p"`       // total probability to draw from, 0 or 1 for all; a value between them needs a Temperature
	MinP        float64 `json:"min_p"`       // least probability, as a share of the likeliest token's; 0 for none; needs a Temperature

	// RepetitionPenalty divides positive logits and multiplies negative logits of tokens in the prompt or after it
	// (Keskar et al., CTRL, 2019). Values above 1 make repetitions less likely. 0 and 1 mean no penalty.
	RepetitionPenalty float64 `json:"repetition_penalty"`

	// PresencePenalty is subtracted from the logits of tokens that occur after the prompt, and FrequencyPenalty once
	// for each time that they occur there, like in OpenAI's API. Negative values make repetitions likelier. 0 means no
	// penalty.
	PresencePenalty  float64 `json:"presence_penalty"`
	FrequencyPenalty float64 `json:"frequency_penalty"`
}

// penalize applies the penalties to logits, in place. The argument prompt has the tokens before the generated ones, and
// generated those that have been chosen so far. First the RepetitionPenalty changes the logit of each token in prompt
// and generated, once. Then the PresencePenalty and the FrequencyPenalty change those in generated. Ids without a logit
// have no effect.
func (s Sampler) penalize(logits []float64, prompt, generated []int) {
	has := func(id int) bool { return id >= 0 && id < len(logits) }
	if r := s.RepetitionPenalty; r != 0 && r != 1 {
		seen := map[int]bool{}
		for _, tokens := range [][]int{prompt, generated} {
			for _, id := range tokens {
				switch {
				case !has(id) || seen[id]:
				case logits[id] < 0:
					logits[id] *= r
				default:
					logits[id] /= r
				}
				seen[id] = true
			}
		}
	}
	if s.PresencePenalty == 0 && s.FrequencyPenalty == 0 {
		return
	}
	counts := map[int]int{}
	for _, id := range generated {
		counts[id]++
	}
	for id, n := range counts {
		if has(id) {
			logits[id] -= s.PresencePenalty + float64(n)*s.FrequencyPenalty
		}
	}
}

// penalizes reports whether penalize changes logits.
func (s Sampler) penalizes() bool {
	return s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 || s.PresencePenalty != 0 || s.FrequencyPenalty != 0
}

// Check returns an error if the Sampler is invalid. Errors use the fields' JSON names.
func (s Sampler) Check() error {
	const temperature, topK, topP, minP = setting.Path("temperature"), setting.Path("top_k"), setting.Path("top_p"), setting.Path("min_p")
	within := func(path setting.Path, x, low, high float64, want string) error {
		return setting.In(path, x, x >= low && x <= high, want)
	}
	if err := cmp.Or(
		within(temperature, s.Temperature, 0, math.MaxFloat64, "finite and at least 0"),
		setting.In(topK, s.TopK, s.TopK >= 0, "at least 1, or 0 for all"),
		within(topP, s.TopP, 0, 1, "from 0 to 1"),
		within(minP, s.MinP, 0, 1, "from 0 to 1"),
		within("presence_penalty", s.PresencePenalty, -2, 2, "from -2 to 2"),
		within("frequency_penalty", s.FrequencyPenalty, -2, 2, "from -2 to 2"),
	); err != nil {
		return err
	}
	if r := s.RepetitionPenalty; r != 0 {
		if err := within("repetition_penalty", r, 0.01, 100, "from 0.01 to 100, or 0 for none"); err != nil {
			return err
		}
	}
	if s.Temperature > 0 {
		return nil
	}
	needs := func(path setting.Path, got any, set bool) error {
		if !set {
			return nil
		}
		return setting.Errorf("%s needs a %s above 0, got %v: leave out %[1]s, or set another %[2]s", path, temperature, got)
	}
	return cmp.Or(needs(topK, s.TopK, s.TopK > 0), needs(topP, s.TopP, s.TopP > 0 && s.TopP < 1), needs(minP, s.MinP, s.MinP > 0))
}

// sample chooses a token. The argument best is the likeliest one.
func (s Sampler) sample(logits []float64, best int, rng *rand.Rand) int {
	if s.Temperature == 0 {
		return best
	}
	ids, weights, total := s.weigh(logits, best)
	return idOf(ids, pick(weights, total*rng.Float64()))
}

// weigh returns the tokens that TopK and TopP keep, in the order of their ids, their unnormalised probabilities, where
// the likeliest token has 1, and the sum of these. The probability is 0 for tokens that MinP leaves out. If ids is nil,
// weights has all tokens.
func (s Sampler) weigh(logits []float64, best int) (ids []int, weights []float64, total float64) {
	if s.TopK > 0 && s.TopK < len(logits) {
		ids = top(logits, s.TopK, math.Inf(-1))
	}
	weights, total = s.weights(logits, best, ids)
	if s.TopP > 0 && s.TopP < 1 {
		enough := s.TopP * total
		if ids == nil {
			// All tokens below floor together have at most the probability 1 − TopP, so they aren't needed.
			floor := math.Log((total-enough)/float64(len(logits))) - 1e-6
			ids = top(logits, len(logits), logits[best]+s.Temperature*floor)
			weights, _ = s.weights(logits, best, ids)
		}
		mass, kept := 0.0, 0
		for kept < len(ids) && mass < enough {
			mass += weights[kept]
			kept++
		}
		ids = ids[:kept]
	}
	if ids != nil {
		slices.Sort(ids)
		weights, total = s.weights(logits, best, ids)
	}
	if s.MinP > 0 {
		total = 0
		for i, w := range weights {
			if w < s.MinP {
				weights[i] = 0
			}
			total += weights[i]
		}
	}
	return ids, weights, total
}

// weights returns the unnormalised probabilities of ids, or of all tokens if ids is nil, and their sum.
func (s Sampler) weights(logits []float64, best int, ids []int) (weights []float64, total float64) {
	if ids == nil {
		weights = slices.Clone(logits)
	}
	for _, id := range ids {
		weights = append(weights, logits[id])
	}
	for i, x := range weights {
		weights[i] = (x - logits[best]) / s.Temperature
	}
	return weights, kernel.ExpShift(weights, weights, 0)
}

// idOf returns element i of ids. If ids is nil, it holds all ids in order.
func idOf(ids []int, i int) int {
	if ids == nil {
		return i
	}
	return ids[i]
}

// pick returns the first index at which the running sum of weights exceeds x.
func pick(weights []float64, x float64) int {
	index, up := 0, 0.0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		index = i
		if up += w; x < up {
			break
		}
	}
	return index // the last possible token if x was rounded up to the sum
}
