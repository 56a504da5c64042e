package decode_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers/decode"
)

func wantHypotheses(t *testing.T, got, want []decode.Hypothesis, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d hypotheses, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if !slices.Equal(g.Tokens, w.Tokens) || !within(tol, g.LogProb, w.LogProb) || !within(tol, g.Score, w.Score) || g.Finished != w.Finished {
			t.Fatalf("hypothesis %d: got %+v, want %+v", i, g, w)
		}
	}
}

// plainBeam implements the search that Beam's comment describes. It keeps no sequences in a model and never ends early.
func plainBeam(m *fake, prompt []int, o decode.BeamOptions) (best []decode.Hypothesis) {
	type live struct {
		tokens  []int
		logProb float64
	}
	followed := []live{{}}
	for length := 1; length <= o.MaxTokens; length++ {
		var extended []live
		for _, h := range followed {
			for id, p := range logSoftmax(m.logits(slices.Concat(prompt, h.tokens))) {
				extended = append(extended, live{append(slices.Clip(h.tokens), id), h.logProb + p})
			}
		}
		slices.SortStableFunc(extended, func(a, b live) int { return cmp.Compare(b.logProb, a.logProb) })
		followed = nil
		for place, h := range extended {
			if len(followed) == o.Width {
				break
			}
			finished := slices.Contains(o.End, h.tokens[length-1])
			if finished && place < o.Width || !finished && length == o.MaxTokens {
				c := decode.Hypothesis{Tokens: h.tokens, LogProb: h.logProb, Score: h.logProb / math.Pow(float64(length), o.LengthPenalty), Finished: finished}
				if finished {
					c.Tokens = h.tokens[:length-1]
				}
				best = append(best, c)
			}
			if !finished {
				followed = append(followed, h)
			}
		}
	}
	slices.SortStableFunc(best, func(a, b decode.Hypothesis) int { return cmp.Compare(b.Score, a.Score) })
	return best[:min(len(best), o.Width)]
}

// TestBeamFollowsDefinition compares Beam with plainBeam: ending early doesn't change the results, and the model's
// sequences match the hypotheses.
func TestBeamFollowsDefinition(t *testing.T) {
	early, seed := false, testseed.Of(t)
	for _, alpha := range []float64{0, 0.5, 2} {
		for _, width := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("alpha %v, width %d", alpha, width), func(t *testing.T) {
				o := decode.BeamOptions{Width: width, MaxTokens: 9, End: []int{2, 6}, LengthPenalty: alpha}
				for trial := range uint64(6) {
					m := newFake(len(prompts)*width, 7)
					m.logits = func(sequence []int) []float64 { return hashedFrom(seed*6+trial, sequence, 7) }
					got := beam(t, m, prompts, o)
					for p := range prompts {
						wantHypotheses(t, got[p], plainBeam(m, prompts[p], o), rounding)
					}
					early = early || m.steps < 9
				}
			})
		}
	}
	if !early {
		t.Error("no search ended early")
	}
}

func TestBeamOfOneIsGreedy(t *testing.T) {
	seed := testseed.Of(t)
	for vocab := 1; vocab <= 8; vocab++ {
		m := newFake(1, vocab)
		// Logits are rounded, so many are equal.
		m.logits = func(sequence []int) []float64 {
			row := hashedFrom(seed, sequence, vocab)
			for i := range row {
				row[i] = math.Round(row[i])
			}
			return row
		}
		end := []int{vocab - 1}
		want, wantLogProb := greedily(m, []int{0}, 10, end...)
		got := beam(t, m, [][]int{{0}}, decode.BeamOptions{Width: 1, MaxTokens: 10, End: end})
		if h := got[0][0]; len(got[0]) != 1 || !slices.Equal(h.Tokens, want) || !near(h.LogProb, wantLogProb) || h.Score != h.LogProb || h.Finished != (len(want) < 10) {
			t.Errorf("vocabulary of %d: got %+v, want the tokens %v with log probability %v", vocab, got[0], want, wantLogProb)
		}
		if m.reorders > 0 {
			t.Errorf("a beam of width 1 was reordered %d times, want 0", m.reorders)
		}
	}
}

// TestBeamEnds checks that a search ends as soon as its results can't improve.
func TestBeamEnds(t *testing.T) {
	// After any token, the end token has probability 0.9.
	m := newFake(4, 3)
	m.logits = func([]int) []float64 { return logs(.06, .04, .9) }
	o := decode.BeamOptions{Width: 2, MaxTokens: 100, End: []int{2}}
	got := beam(t, m, [][]int{{0}, {1}}, o)
	// The second step finds the second-best hypothesis: 0 and the end token. The live hypothesis 0, 0 has only
	// probability 0.0036.
	for p := range got {
		wantHypotheses(t, got[p], []decode.Hypothesis{
			{LogProb: math.Log(.9), Score: math.Log(.9), Finished: true},
			{Tokens: []int{0}, LogProb: math.Log(.06 * .9), Score: math.Log(.06 * .9), Finished: true},
		}, rounding)
	}
	if m.steps != 2 {
		t.Errorf("took %d steps, want 2", m.steps)
	}

	// With α = 1, the score is the mean log probability. The search continues while a live hypothesis could still get a
	// better score than the second-best hypothesis: at MaxTokens, if all its further tokens had probability 1.
	o.LengthPenalty, o.MaxTokens = 1, 20
	m = newFake(2, 3)
	m.logits = func([]int) []float64 { return logs(.06, .04, .9) }
	must.Get(decode.Beam(t.Context(), m, [][]int{{0}}, o))(t)
	// After n steps, the best live hypothesis has probability 0.06^n. The search ends when n·log 0.06 / 20 is below the
	// second-best score, log(0.06 · 0.9)/2.
	if want := int(math.Ceil(20 * math.Log(.06*.9) / 2 / math.Log(.06))); m.steps != want {
		t.Errorf("took %d steps, want %d", m.steps, want)
	}
}

// TestBeamTies checks the order of equal scores: by the hypothesis that is continued, then by the new token's id.
func TestBeamTies(t *testing.T) {
	m := newFake(6, 8)
	m.logits = func([]int) []float64 { return make([]float64, 8) }
	got := beam(t, m, [][]int{{3}}, decode.BeamOptions{Width: 6, MaxTokens: 2})
	for i, h := range got[0] {
		if !slices.Equal(h.Tokens, []int{0, i}) {
			t.Errorf("hypothesis %d is %v, want [0 %d]", i, h.Tokens, i)
		}
	}
	if len(got[0]) != 6 {
		t.Errorf("got %d hypotheses, want 6", len(got[0]))
	}

	o := decode.BeamOptions{Width: 7, MaxTokens: 2}
	m = newFake(7, 9)
	m.logits = func([]int) []float64 { return []float64{0, 1, 0, 1, 0, 1, 0, 1, 0} }
	got = beam(t, m, [][]int{{3}}, o)
	wantHypotheses(t, got[0], plainBeam(m, []int{3}, o), rounding)

	// The search ends if a live hypothesis can at best equal a finished one.
	m = newFake(1, 2)
	m.logits = func(sequence []int) []float64 {
		if len(sequence) > 1 {
			return []float64{-inf, 0}
		}
		return []float64{0, 0}
	}
	if _, err := decode.Beam(t.Context(), m, [][]int{{1}}, decode.BeamOptions{Width: 1, MaxTokens: 9, End: []int{0}}); err != nil || m.steps != 1 {
		t.Errorf("took %d steps, want 1 (error %v)", m.steps, err)
	}
}

// TestBeamRoom checks that the room for a prompt's continuation depends only on that prompt's length.
func TestBeamRoom(t *testing.T) {
	m := newFake(8, 6)
	m.capacity = 6
	got := beam(t, m, prompts, decode.BeamOptions{Width: 2, MaxTokens: math.MaxInt, LengthPenalty: 1})
	for p, prompt := range prompts {
		wantHypotheses(t, got[p], plainBeam(m, prompt, decode.BeamOptions{Width: 2, MaxTokens: 6 - len(prompt) + 1, LengthPenalty: 1}), rounding)
	}
}

// TestBeamGoesOn checks that Beam appends a prompt to the tokens in the first of the prompt's sequences. The tokens in
// its other sequences don't matter.
func TestBeamGoesOn(t *testing.T) {
	m := newFake(4, 6)
	m.sequences = [][]int{{1, 2}, {5}, {0}, {5, 5, 5}}
	o := decode.BeamOptions{Width: 2, MaxTokens: 4, End: []int{3}}
	got := beam(t, m, [][]int{{3}, {4}}, o)
	for p, prompt := range [][]int{{1, 2, 3}, {0, 4}} {
		wantHypotheses(t, got[p], plainBeam(m, prompt, o), rounding)
	}
}

func TestBeamCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newFake(4, 6)
	plain := m.logits
	m.logits = func(sequence []int) []float64 {
		if len(sequence) == 3 {
			cancel()
		}
		return plain(sequence)
	}
	got, err := decode.Beam(ctx, m, [][]int{{1}, {2}}, decode.BeamOptions{Width: 2, MaxTokens: 50})
	if !errors.Is(err, context.Canceled) || m.steps != 3 {
		t.Fatalf("got the error %v after %d steps, want %v after 3", err, m.steps, context.Canceled)
	}
	for p, prompt := range [][]int{{1}, {2}} {
		wantHypotheses(t, got[p], plainBeam(m, prompt, decode.BeamOptions{Width: 2, MaxTokens: 3}), rounding)
	}
	if _, err = decode.Beam(ctx, m, [][]int{{1}}, decode.BeamOptions{Width: 2, MaxTokens: 50}); !errors.Is(err, context.Canceled) || m.steps != 3 {
		t.Errorf("got the error %v after %d steps, want %v after 3", err, m.steps, context.Canceled)
	}
}

// stuck is a Model whose Reorder fails.
type stuck struct{ *fake }

func (stuck) Reorder([]int) error { return errBroken }

func TestBeamErrors(t *testing.T) {
	tests := []struct {
		name    string
		options decode.BeamOptions
		want    string
	}{
		{"no width", decode.BeamOptions{MaxTokens: 1}, "Width must be at least 1, got 0"},
		{"too wide", decode.BeamOptions{Width: 5, MaxTokens: 1}, "Batch must be at least 1 prompts times 5 sequences, got 4"},
		{"negative penalty", decode.BeamOptions{Width: 1, MaxTokens: 1, LengthPenalty: -11}, "LengthPenalty must be from -10 to 10, got -11"},
		{"NaN penalty", decode.BeamOptions{Width: 1, MaxTokens: 1, LengthPenalty: math.NaN()}, "got NaN"},
		{"infinite penalty", decode.BeamOptions{Width: 1, MaxTokens: 1, LengthPenalty: inf}, "got +Inf"},
		{"huge penalty", decode.BeamOptions{Width: 1, MaxTokens: 1, LengthPenalty: 1e308}, "got 1e+308"},
		{"no reordering", decode.BeamOptions{Width: 2, MaxTokens: 2}, "reordering the model's sequences: broken"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			must.Refuse(decode.Beam(t.Context(), stuck{newFake(4, 5)}, [][]int{{1}}, tc.options))(t, "decode: ", tc.want)
		})
	}
}
