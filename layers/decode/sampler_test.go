package decode_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers/decode"
)

var inf = math.Inf(1)

// logs converts probabilities to logits.
func logs(probs ...float64) []float64 {
	for i, p := range probs {
		probs[i] = math.Log(p)
	}
	return probs
}

func TestProbs(t *testing.T) {
	tests := []struct {
		name    string
		sampler decode.Sampler
		logits  []float64
		want    []float64
	}{
		{"greedy", decode.Sampler{}, []float64{1, 3, 2}, []float64{0, 1, 0}},
		{"greedy takes the lowest id among equal logits", decode.Sampler{}, []float64{1, 3, 3}, []float64{0, 1, 0}},
		{"greedy with TopP 1", decode.Sampler{TopP: 1}, []float64{3, 3, 2}, []float64{1, 0, 0}},
		{"greedy with -Inf", decode.Sampler{}, []float64{-inf, -5, -inf}, []float64{0, 1, 0}},

		{"temperature 1", decode.Sampler{Temperature: 1}, logs(.5, .3, .2), []float64{.5, .3, .2}},
		{"temperature 1/2 squares", decode.Sampler{Temperature: .5}, logs(.5, .3, .2), []float64{.25 / .38, .09 / .38, .04 / .38}},
		{"temperature 2 takes roots", decode.Sampler{Temperature: 2}, logs(.64, .32, .04), []float64{.8 / (1 + math.Sqrt(.32)), math.Sqrt(.32) / (1 + math.Sqrt(.32)), .2 / (1 + math.Sqrt(.32))}},
		{"low temperature", decode.Sampler{Temperature: 1e-300}, []float64{1, 1 + 1e-15, 0}, []float64{0, 1, 0}},
		{"subnormal temperature", decode.Sampler{Temperature: 5e-324}, []float64{2, 1, 2}, []float64{.5, 0, .5}},
		{"high temperature", decode.Sampler{Temperature: math.MaxFloat64}, []float64{900, -900, -inf, 0}, []float64{1. / 3, 1. / 3, 0, 1. / 3}},
		{"logits of any size", decode.Sampler{Temperature: 1}, []float64{1e300, 1e300, -1e300}, []float64{.5, .5, 0}},
		{"low logits", decode.Sampler{Temperature: 1}, []float64{-1e300, -inf}, []float64{1, 0}},

		{"top 2", decode.Sampler{Temperature: 1, TopK: 2}, logs(.2, .5, .3), []float64{0, .625, .375}},
		{"top 2 with equal logits", decode.Sampler{Temperature: 1, TopK: 2}, []float64{1, 2, 1, 1}, []float64{1 / (1 + math.E), math.E / (1 + math.E), 0, 0}},
		{"top 1", decode.Sampler{Temperature: 1, TopK: 1}, []float64{0, 2, 2}, []float64{0, 1, 0}},
		{"top 3 of 3", decode.Sampler{Temperature: 1, TopK: 3}, logs(.5, .3, .2), []float64{.5, .3, .2}},
		{"top 9 of 3", decode.Sampler{Temperature: 1, TopK: 9}, logs(.5, .3, .2), []float64{.5, .3, .2}},
		{"top 3 of 2 possible tokens", decode.Sampler{Temperature: 1, TopK: 3}, []float64{0, -inf, -inf, 0}, []float64{.5, 0, 0, .5}},

		{"nucleus of .75", decode.Sampler{Temperature: 1, TopP: .75}, logs(.2, .5, .3), []float64{0, .625, .375}},
		{"nucleus of .85", decode.Sampler{Temperature: 1, TopP: .85}, logs(.2, .5, .3), []float64{.2, .5, .3}},
		{"nucleus of .45", decode.Sampler{Temperature: 1, TopP: .45}, logs(.2, .5, .3), []float64{0, 1, 0}},
		{"the smallest nucleus", decode.Sampler{Temperature: 1, TopP: 5e-324}, logs(.2, .5, .3), []float64{0, 1, 0}},
		{"a nucleus of exactly two", decode.Sampler{Temperature: 1, TopP: .5}, []float64{7, 7, 7, 7}, []float64{.5, .5, 0, 0}},
		{"a nucleus just above two", decode.Sampler{Temperature: 1, TopP: .51}, []float64{7, 7, 7, 7}, []float64{1. / 3, 1. / 3, 1. / 3, 0}},
		{"a nucleus of 0, for all", decode.Sampler{Temperature: 1}, logs(.5, .3, .2), []float64{.5, .3, .2}},
		{"a nucleus of 1", decode.Sampler{Temperature: 1, TopP: 1}, logs(.5, .3, .2), []float64{.5, .3, .2}},
		{"a nucleus just below 1", decode.Sampler{Temperature: 1, TopP: math.Nextafter(1, 0)}, []float64{0, 0, -inf}, []float64{.5, .5, 0}},

		{"the nucleus is taken after the temperature", decode.Sampler{Temperature: .5, TopP: .6}, logs(.5, .3, .2), []float64{1, 0, 0}},
		{"the nucleus is taken from the top k", decode.Sampler{Temperature: 1, TopK: 2, TopP: .6}, logs(.5, .3, .2), []float64{1, 0, 0}},
		{"top k comes before the nucleus", decode.Sampler{Temperature: 1, TopK: 2, TopP: .99}, logs(.5, .3, .2), []float64{.625, .375, 0}},
		{"one token", decode.Sampler{Temperature: 1, TopK: 1, TopP: .1}, []float64{-7}, []float64{1}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			logits := slices.Clone(tc.logits)
			got := must.Get(tc.sampler.Probs(logits))(t)
			for i := range tc.want {
				if !near(got[i], tc.want[i]) || (got[i] == 0) != (tc.want[i] == 0) {
					t.Fatalf("got %v, want %v", got, tc.want)
				}
			}
			if !slices.Equal(logits, tc.logits) {
				t.Errorf("Probs changed the logits to %v, want %v", logits, tc.logits)
			}
		})
	}
}

// TestTransformers compares probabilities with those of the transformers library: see testdata/sampler.py.
func TestTransformers(t *testing.T) {
	var cases []struct {
		Sampler           decode.Sampler
		Logits, Probs     []float64
		Prompt, Generated []int
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("testdata/sampler.json"))(t), &cases))
	for _, c := range cases {
		c.Sampler.Penalize(c.Logits, append(c.Prompt, -1, 99), append(c.Generated, len(c.Logits)))
		probs := must.Get(c.Sampler.Probs(c.Logits))(t)
		for id, want := range c.Probs {
			if !(math.Abs(probs[id]-want) <= 1e-14) || (probs[id] == 0) != (want == 0) {
				t.Errorf("%+v: got %v, want %v", c.Sampler, probs, c.Probs)
				break
			}
		}
	}
}

func TestSamplerErrors(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name    string
		sampler decode.Sampler
		logits  []float64
		want    string
	}{
		{"negative temperature", decode.Sampler{Temperature: -1}, []float64{1}, "decode: temperature must be finite and at least 0, got -1"},
		{"infinite temperature", decode.Sampler{Temperature: inf}, []float64{1}, "got +Inf"},
		{"NaN temperature", decode.Sampler{Temperature: nan}, []float64{1}, "got NaN"},
		{"negative TopK", decode.Sampler{TopK: -1}, []float64{1}, "top_k must be at least 1, or 0 for all, got -1"},
		{"negative TopP", decode.Sampler{TopP: -.1}, []float64{1}, "top_p must be from 0 to 1, got -0.1"},
		{"TopP above 1, with a Temperature", decode.Sampler{Temperature: 1, TopP: 1.5}, []float64{1}, "got 1.5"},
		{"TopP above 1", decode.Sampler{TopP: 1.5}, []float64{1}, "got 1.5"},
		{"NaN TopP", decode.Sampler{TopP: nan}, []float64{1}, "got NaN"},
		{"TopP without a Temperature", decode.Sampler{TopP: .9}, []float64{1}, "top_p needs a temperature above 0, got 0.9: leave out top_p"},
		{"TopK without a Temperature", decode.Sampler{TopK: 40}, []float64{1}, "top_k needs a temperature above 0, got 40"},
		{"MinP without a Temperature", decode.Sampler{MinP: .1}, []float64{1}, "min_p needs a temperature above 0, got 0.1"},
		{"negative MinP", decode.Sampler{MinP: -.1}, []float64{1}, "min_p must be from 0 to 1, got -0.1"},
		{"NaN MinP", decode.Sampler{Temperature: 1, MinP: nan}, []float64{1}, "min_p must be from 0 to 1, got NaN"},
		{"negative RepetitionPenalty", decode.Sampler{RepetitionPenalty: -1}, []float64{1}, "repetition_penalty must be from 0.01 to 100, or 0 for none, got -1"},
		{"NaN RepetitionPenalty", decode.Sampler{RepetitionPenalty: nan}, []float64{1}, "got NaN"},
		{"PresencePenalty above 2", decode.Sampler{PresencePenalty: 2.1}, []float64{1}, "presence_penalty must be from -2 to 2, got 2.1"},
		{"FrequencyPenalty below -2", decode.Sampler{FrequencyPenalty: -inf}, []float64{1}, "frequency_penalty must be from -2 to 2, got -Inf"},
		{"NaN", decode.Sampler{}, []float64{1, nan, inf}, "got NaN for token 1"},
		{"+Inf", decode.Sampler{Temperature: 1}, []float64{1, -inf, inf}, "got +Inf for token 2"},
		{"no possible token", decode.Sampler{Temperature: 1}, []float64{-inf, -inf}, "every logit is -Inf"},
		{"no logits", decode.Sampler{}, nil, "no token can be chosen"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			must.Refuse(tc.sampler.Probs(tc.logits))(t, "decode: ", tc.want)
			must.Refuse(tc.sampler.Sample(tc.logits, rand.New(rand.NewPCG(1, 2))))(t, "decode: ", tc.want)
		})
	}
	if token, err := (decode.Sampler{}).Sample([]float64{1, 2}, nil); err != nil || token != 1 {
		t.Errorf("greedy without a random source: got token %d and error %v, want token 1", token, err)
	}
}

// TestSampleFollowsProbs is a chi-squared test at 0.1 %: about one seed in 1,000 fails. The default seed doesn't fail.
func TestSampleFollowsProbs(t *testing.T) {
	testseed.Slow(t)
	logits := append(hashed([]int{1, 2, 3}, 9), -inf)
	tests := []struct {
		name    string
		sampler decode.Sampler
	}{
		{"temperature 1", decode.Sampler{Temperature: 1}},
		{"cool", decode.Sampler{Temperature: 0.7}},
		{"hot", decode.Sampler{Temperature: 3}},
		{"top k", decode.Sampler{Temperature: 1, TopK: 4}},
		{"top p", decode.Sampler{Temperature: 1.5, TopP: 0.8}},
		{"min p", decode.Sampler{Temperature: 1.5, MinP: 0.3}},
		{"all three", decode.Sampler{Temperature: 2, TopK: 7, TopP: 0.9}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			probs := must.Get(tc.sampler.Probs(logits))(t)
			rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
			counts := make([]int, len(logits))
			for range 50_000 {
				token := must.Get(tc.sampler.Sample(logits, rng))(t)
				counts[token]++
			}
			wantCounts(t, counts, probs)
		})
	}
}

// wantCounts compares the frequencies of tokens with their probabilities, by Pearson's test.
func wantCounts(t *testing.T, counts []int, probs []float64) {
	t.Helper()
	// The 99.9th percentiles of the chi-squared distribution with 1, 2, … degrees of freedom.
	percentiles := []float64{10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12, 27.88, 29.59}
	total, cells, chi2 := 0, 0, 0.0
	for _, n := range counts {
		total += n
	}
	for id, p := range probs {
		if p == 0 {
			if counts[id] > 0 {
				t.Errorf("token %d has probability 0, but was drawn %d times", id, counts[id])
			}
			continue
		}
		want := p * float64(total)
		chi2 += (float64(counts[id]) - want) * (float64(counts[id]) - want) / want
		cells++
	}
	if chi2 > percentiles[cells-2] {
		t.Errorf("chi-squared is %.1f for %d tokens: got the counts %v, want the probabilities %.3v", chi2, cells, counts, probs)
	}
}

// TestOptionsThatKeepAll uses options that keep all tokens: they don't change which token a random number chooses.
func TestOptionsThatKeepAll(t *testing.T) {
	seed := testseed.Of(t)
	logits := hashedFrom(seed, []int{7}, 20)
	draws := func(s decode.Sampler) (tokens []int) {
		rng := rand.New(rand.NewPCG(seed, 6))
		for range 200 {
			token := must.Get(s.Sample(logits, rng))(t)
			tokens = append(tokens, token)
		}
		return tokens
	}
	want := draws(decode.Sampler{Temperature: 1})
	for _, s := range []decode.Sampler{{Temperature: 1, TopK: 20}, {Temperature: 1, TopK: 99, TopP: 1}, {Temperature: 1, TopP: 1 - 1e-9}} {
		if got := draws(s); !slices.Equal(got, want) {
			t.Errorf("%+v draws %v, want %v", s, got, want)
		}
	}
}

// FuzzSampler uses arbitrary bits as logits: nothing panics, and Sample chooses only tokens with a probability above 0.
func FuzzSampler(f *testing.F) {
	bits := func(xs ...float64) (b []byte) {
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	f.Add(bits(1, 2, 3), 1.0, 2, 0.9, 0.5, uint64(1))
	f.Add(bits(math.NaN(), inf), 0.0, 0, 0.0, 0.0, uint64(2))
	f.Add(bits(-inf, -inf), 1.0, 1, 1.0, 1.0, uint64(3))
	f.Add(bits(-inf, 5e-324, -5e-324, 0), 5e-324, 3, 5e-324, 5e-324, uint64(4))
	f.Add(bits(math.MaxFloat64, -math.MaxFloat64, 0), math.MaxFloat64, 0, 0.5, 0.1, uint64(5))
	f.Add(bits(7, 7, 7, 7, 7), 0.1, 4, 0.999999, 1.0, uint64(6))
	f.Fuzz(func(t *testing.T, raw []byte, temperature float64, topK int, topP, minP float64, seed uint64) {
		var logits []float64
		for ; len(raw) >= 8; raw = raw[8:] {
			logits = append(logits, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
		s := decode.Sampler{Temperature: temperature, TopK: topK, TopP: topP, MinP: minP}
		probs, err := s.Probs(logits)
		token, err2 := s.Sample(logits, rand.New(rand.NewPCG(seed, 0)))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("Probs returned the error %v, but Sample returned %v", err, err2)
		}
		if err != nil {
			if err.Error() != err2.Error() {
				t.Fatalf("Probs returned the error %v, but Sample returned %v", err, err2)
			}
			return
		}
		total, possible := 0.0, 0
		for id, p := range probs {
			if !(p >= 0 && p <= 1) || p > 0 && math.IsInf(logits[id], -1) {
				t.Fatalf("token %d with logit %v has probability %v, want 0 to 1, and 0 for a logit of -Inf", id, logits[id], p)
			}
			if p > 0 {
				possible++
			}
			total += p
		}
		if math.Abs(total-1) > 1e-9 {
			t.Fatalf("the sum of the probabilities %v is %v, want 1", probs, total)
		}
		if topK > 0 && possible > topK {
			t.Fatalf("%d tokens are possible, want at most TopK, %d", possible, topK)
		}
		if probs[token] == 0 {
			t.Fatalf("chose token %d, which has probability 0", token)
		}
	})
}
