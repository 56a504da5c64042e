package decode_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/decode"
)

// greedily returns the greedy continuation of a prompt, directly from its definition.
func greedily(m *fake, prompt []int, maxTokens int, end ...int) (tokens []int, logProb float64) {
	for len(tokens) < maxTokens {
		logits := m.logits(slices.Concat(prompt, tokens))
		token := slices.Index(logits, slices.Max(logits))
		logProb += logSoftmax(logits)[token]
		if slices.Contains(end, token) {
			break
		}
		tokens = append(tokens, token)
	}
	return tokens, logProb
}

var prompts = [][]int{{1}, {2, 3, 4, 0, 1}, {3, 3}, {0, 1, 2}}

func TestGenerateGreedy(t *testing.T) {
	m := newFake(5, 12)
	got := generate(t, m, prompts, decode.Options{MaxTokens: 6, End: []int{5, 3}})
	stops := map[decode.Stop]bool{}
	for i, r := range got {
		tokens, logProb := greedily(m, prompts[i], 6, 5, 3)
		if !slices.Equal(r.Tokens, tokens) || !near(r.LogProb, logProb) {
			t.Errorf("sequence %d: got %v with log probability %v, want %v with %v", i, r.Tokens, r.LogProb, tokens, logProb)
		}
		want := decode.StopEnd
		if len(tokens) == 6 {
			want = decode.StopMaxTokens
		}
		if r.Stop != want {
			t.Errorf("sequence %d: stopped by %v, want %v", i, r.Stop, want)
		}
		stops[r.Stop] = true

		held := slices.Concat(prompts[i], tokens)
		if want == decode.StopMaxTokens {
			held = held[:len(held)-1]
		}
		if !slices.Equal(m.held(i), held) {
			t.Errorf("the model's sequence %d holds %v, want %v", i, m.held(i), held)
		}
	}
	if len(stops) != 2 {
		t.Errorf("got sequences that end for the reasons %v, want two reasons", stops)
	}
	if m.held(4) != nil {
		t.Errorf("a sequence without a prompt holds %v, want no tokens", m.held(4))
	}
	if m.reorders > 0 || m.steps > 6 {
		t.Errorf("took %d steps and %d reorders, want at most 6 steps and no reorders", m.steps, m.reorders)
	}
}

// TestGenerateIgnoresTheBatch checks that the other sequences, and when they end, don't change a sequence.
func TestGenerateIgnoresTheBatch(t *testing.T) {
	options := decode.Options{Sampler: decode.Sampler{Temperature: 1.3, TopK: 5, TopP: 0.95}, Seed: 3, MaxTokens: 30, End: []int{5}}
	together := generate(t, newFake(4, 6), prompts, options)
	others := slices.Clone(prompts)
	for i := range others {
		if i != 1 {
			others[i] = []int{4, 4, 4, 4, 4, 4, 4}
		}
	}
	again := generate(t, newFake(9, 6), others, options)
	if !slices.Equal(together[1].Tokens, again[1].Tokens) || together[1].LogProb != again[1].LogProb || len(together[1].Tokens) == 0 {
		t.Errorf("got %v in one batch and %v in another, want the same tokens", together[1], again[1])
	}
}

func TestGenerateSeeds(t *testing.T) {
	write := func(seed uint64) [][]int {
		same := [][]int{{1}, {1}, {1}}
		results := generate(t, newFake(3, 6), same, decode.Options{Sampler: decode.Sampler{Temperature: 1}, Seed: seed, MaxTokens: 20})
		var tokens [][]int
		for _, r := range results {
			tokens = append(tokens, r.Tokens)
		}
		return tokens
	}
	a, b := write(1), write(1)
	if !slices.EqualFunc(a, b, slices.Equal) {
		t.Errorf("one seed gave %v and then %v, want the same tokens", a, b)
	}
	if c := write(2); slices.Equal(a[0], c[0]) {
		t.Errorf("two seeds gave the same tokens %v", c[0])
	}
	if slices.Equal(a[0], a[1]) || slices.Equal(a[1], a[2]) {
		t.Errorf("sequences with equal prompts have the same tokens: %v", a)
	}
}

// TestGenerateFollowsProbs checks that the first tokens of many sequences, and of many seeds, are independent draws.
func TestGenerateFollowsProbs(t *testing.T) {
	const n = 20_000
	sampler := decode.Sampler{Temperature: 1.2}
	probs := must.Get(sampler.Probs(hashed([]int{1}, 6)))(t)
	first := func(m *fake, seed uint64, prompts [][]int) (tokens []int) {
		results := generate(t, m, prompts, decode.Options{Sampler: sampler, Seed: seed, MaxTokens: 1})
		for _, r := range results {
			tokens = append(tokens, r.Tokens[0])
		}
		return tokens
	}
	count := func(tokens []int) []int {
		counts := make([]int, 6)
		for _, id := range tokens {
			counts[id]++
		}
		return counts
	}
	one := hashed([]int{1}, 6)
	constant := func([]int) []float64 { return slices.Clone(one) }
	m := newFake(n, 6)
	m.logits = constant
	wantCounts(t, count(first(m, 9, slices.Repeat([][]int{{1}}, n))), probs)

	var tokens []int
	for seed := range uint64(n) {
		m := newFake(1, 6)
		m.logits = constant
		tokens = append(tokens, first(m, seed, [][]int{{1}})...)
	}
	wantCounts(t, count(tokens), probs)
}

func TestGenerateLogProbs(t *testing.T) {
	m := newFake(1, 6)
	o := decode.Options{Sampler: decode.Sampler{Temperature: 2, TopK: 4}, MaxTokens: 50, End: []int{0}}
	results := generate(t, m, [][]int{{1, 2}}, o)
	r := results[0]
	if r.Stop != decode.StopEnd || len(r.Tokens) == 0 || len(r.LogProbs) != len(r.Tokens) {
		t.Fatalf("got %+v, want some tokens with log probabilities, ended by an end token", r)
	}
	sequence, total := []int{1, 2}, 0.0
	for i, id := range append(slices.Clone(r.Tokens), 0) {
		want := logSoftmax(m.logits(sequence))[id] // without the temperature
		if i < len(r.Tokens) && !near(r.LogProbs[i], want) {
			t.Errorf("token %d has log probability %v, want %v", i, r.LogProbs[i], want)
		}
		total += want
		sequence = append(sequence, id)
	}
	if !near(r.LogProb, total) {
		t.Errorf("LogProb is %v, want the sum %v", r.LogProb, total)
	}
}

// TestGeneratePenalties checks that Generate applies penalties to the prompt's and the generated tokens, greedily too,
// and that log probabilities don't change.
func TestGeneratePenalties(t *testing.T) {
	for _, s := range []decode.Sampler{{RepetitionPenalty: 3}, {RepetitionPenalty: 0.5}, {PresencePenalty: 1}, {FrequencyPenalty: 0.8}, {RepetitionPenalty: 1}} {
		m := newFake(4, 6)
		for i, r := range generate(t, m, prompts, decode.Options{Sampler: s, MaxTokens: 9}) {
			sequence := slices.Clone(prompts[i])
			for j := range r.Tokens {
				logits := m.logits(sequence)
				logProb := logSoftmax(logits)
				s.Penalize(logits, prompts[i], sequence[len(prompts[i]):])
				token := slices.Index(logits, slices.Max(logits))
				if r.Tokens[j] != token || !near(r.LogProbs[j], logProb[token]) {
					t.Fatalf("%+v, sequence %d, token %d: got %d with log probability %v, want %d with %v", s, i, j, r.Tokens[j], r.LogProbs[j], token, logProb[token])
				}
				sequence = append(sequence, token)
			}
		}
	}
}

func TestGenerateRoom(t *testing.T) {
	m := newFake(4, 6)
	m.capacity = 7
	results := generate(t, m, prompts, decode.Options{MaxTokens: math.MaxInt})
	for i, r := range results {
		want, _ := greedily(m, prompts[i], 7-len(prompts[i])+1)
		if r.Stop != decode.StopRoom || !slices.Equal(r.Tokens, want) || m.Room(i) != 0 {
			t.Errorf("sequence %d: got %v, %v, want %v", i, r.Tokens, r.Stop, want)
		}
	}
}

// TestGenerateKeep sets Keep: whenever the room of a sequence is used up, the sequence continues from its last tokens.
func TestGenerateKeep(t *testing.T) {
	const capacity, longest = 5, 23
	for _, keep := range []int{1, 2, 4, 5, 9} {
		m := newFake(4, 6)
		m.capacity = capacity
		results := generate(t, m, prompts, decode.Options{MaxTokens: longest, Keep: keep})
		for i, r := range results {
			sequence, held := slices.Clone(prompts[i]), len(prompts[i])
			for range longest {
				logits := m.logits(sequence[len(sequence)-held:])
				sequence = append(sequence, slices.Index(logits, slices.Max(logits)))
				if held++; held > capacity {
					held = min(keep, capacity)
				}
			}
			if want := sequence[len(prompts[i]):]; !slices.Equal(r.Tokens, want) || r.Stop != decode.StopMaxTokens {
				t.Errorf("keeping %d, sequence %d: got %v, %v, want %v", keep, i, r.Tokens, r.Stop, want)
			}
		}
		if m.forgotten == 0 {
			t.Error("no sequence used up its room")
		}
	}
	m := newFake(4, 6)
	m.capacity = 8
	if _, err := decode.Generate(t.Context(), m, prompts, decode.Options{MaxTokens: 4, Keep: 2}); err != nil || m.forgotten > 0 {
		t.Errorf("%d sequences with enough room were forgotten, want 0 (error %v)", m.forgotten, err)
	}
}

// forgetless is a Model whose Forget fails.
type forgetless struct{ *fake }

func (forgetless) Forget(int) error { return errBroken }

func TestGenerateKeepErrors(t *testing.T) {
	full := newFake(1, 6)
	full.capacity = 2
	for _, tc := range []struct {
		name  string
		model decode.Model
		keep  int
		want  string
	}{
		{"negative", newFake(1, 6), -1, "Keep must be at least 0"},
		{"no Forget", struct{ decode.Model }{newFake(1, 6)}, 1, "0 for a model without Forget, got 1"},
		{"an error", forgetless{full}, 1, "forgetting sequence 0: broken"},
	} {
		must.Refuse(decode.Generate(t.Context(), tc.model, [][]int{{1}}, decode.Options{MaxTokens: 9, Keep: tc.keep}))(t, "decode: ", tc.want)
	}
}

// TestGenerateGoesOn checks that a second call continues from the model's state after the first call.
func TestGenerateGoesOn(t *testing.T) {
	m := newFake(1, 6)
	first := generate(t, m, [][]int{{1}}, decode.Options{MaxTokens: 4})
	tokens := first[0].Tokens
	second := generate(t, m, [][]int{tokens[3:]}, decode.Options{MaxTokens: 4})
	want, _ := greedily(m, []int{1}, 8)
	if got := append(tokens, second[0].Tokens...); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOnToken(t *testing.T) {
	type call struct{ sequence, token int }
	var calls []call
	m := newFake(4, 6)
	results, err := decode.Generate(t.Context(), m, prompts, decode.Options{
		MaxTokens: 6,
		OnToken: func(sequence, token int) bool {
			calls = append(calls, call{sequence, token})
			return sequence != 2 || len(calls) < 8
		},
	})
	must.Do(t, err)
	var want []call
	for step := range 6 {
		for i, r := range results {
			if step < len(r.Tokens) {
				want = append(want, call{i, r.Tokens[step]})
			}
		}
	}
	if !slices.Equal(calls, want) {
		t.Errorf("got %v, want %v", calls, want)
	}
	if r := results[2]; r.Stop != decode.StopCaller || len(r.Tokens) != 3 {
		t.Errorf("sequence 2: got %+v, want 3 tokens and %v", r, decode.StopCaller)
	}
	if r := results[3]; r.Stop != decode.StopMaxTokens || len(r.Tokens) != 6 {
		t.Errorf("sequence 3: got %+v, want 6 tokens and %v", r, decode.StopMaxTokens)
	}
}

func TestGenerateCancelled(t *testing.T) {
	m := newFake(4, 6)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results, err := decode.Generate(ctx, m, prompts, decode.Options{MaxTokens: 10, OnToken: func(sequence, _ int) bool {
		if sequence == 1 && m.steps == 3 {
			cancel()
		}
		return true
	}})
	if !errors.Is(err, context.Canceled) || m.steps != 3 {
		t.Fatalf("got the error %v after %d steps, want %v after 3", err, m.steps, context.Canceled)
	}
	for i, r := range results {
		if want, _ := greedily(m, prompts[i], 3); !slices.Equal(r.Tokens, want) || r.Stop != 0 {
			t.Errorf("sequence %d: got %v, %v, want %v", i, r.Tokens, r.Stop, want)
		}
	}
	results, err = decode.Generate(ctx, m, prompts, decode.Options{MaxTokens: 10})
	if !errors.Is(err, context.Canceled) || m.steps != 3 || len(results) != 4 {
		t.Errorf("got %v and the error %v after %d steps, want 4 results and %v after 3", results, err, m.steps, context.Canceled)
	}
}

// TestGenerateFails checks that Generate returns the tokens so far if the model returns invalid logits.
func TestGenerateFails(t *testing.T) {
	m := newFake(2, 6)
	plain := m.logits
	m.logits = func(sequence []int) []float64 {
		row := plain(sequence)
		if len(sequence) == 5 {
			row[4] = math.NaN()
		}
		return row
	}
	results, err := decode.Generate(t.Context(), m, [][]int{{1}, {2, 3}}, decode.Options{MaxTokens: 9})
	must.Fail(t, err, "decode: sequence 1: a logit must be finite")
	if len(results) != 2 || len(results[0].Tokens) != 4 || len(results[1].Tokens) != 3 {
		t.Errorf("got %v, want 4 and 3 tokens", results)
	}
}

func TestGenerateChecksSampler(t *testing.T) {
	must.Refuse(decode.Generate(t.Context(), newFake(1, 6), [][]int{{1}}, decode.Options{MaxTokens: 1, Sampler: decode.Sampler{TopP: 2}}))(t, "decode: top_p must be from 0 to 1, got 2")
}

func TestStopString(t *testing.T) {
	for stop, want := range map[decode.Stop]string{0: "not ended", decode.StopRoom: "no more room in the model", 9: "Stop(9)", -1: "Stop(-1)"} {
		if got := stop.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Tokens that are barred aren't chosen: some never, some not first, and end tokens not before a number of tokens. The
// log probabilities stay those of the model.
func TestGenerateBarred(t *testing.T) {
	free := generate(t, newFake(5, 12), prompts, decode.Options{MaxTokens: 6, End: []int{5, 3}})
	o := decode.Options{MaxTokens: 6, End: []int{5, 3}, Rules: decode.Rules{Suppress: []int{free[0].Tokens[0], -1, 99}, SuppressFirst: []int{free[1].Tokens[0]}, MinTokens: 3}}
	m, differ := newFake(5, 12), false
	for i, r := range generate(t, m, prompts, o) {
		var want []int
		for len(want) < 6 {
			logits := m.logits(slices.Concat(prompts[i], want))
			sums := logSoftmax(logits)
			barred := slices.Clone(o.Suppress[:1])
			if len(want) == 0 {
				barred = append(barred, o.SuppressFirst...)
			}
			if len(want) < 3 {
				barred = append(barred, o.End...)
			}
			for _, id := range barred {
				logits[id] = math.Inf(-1)
			}
			token := slices.Index(logits, slices.Max(logits))
			if slices.Contains(o.End, token) {
				break
			}
			if n := len(want); n < len(r.LogProbs) && !near(r.LogProbs[n], sums[token]) {
				t.Errorf("sequence %d: token %d has log probability %v, want %v", i, n, r.LogProbs[n], sums[token])
			}
			want = append(want, token)
		}
		if !slices.Equal(r.Tokens, want) {
			t.Errorf("sequence %d: got %v, want %v", i, r.Tokens, want)
		}
		differ = differ || !slices.Equal(want, free[i].Tokens)
	}
	if !differ {
		t.Error("barred tokens change nothing")
	}
}
