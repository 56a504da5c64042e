package decode_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/decode"
)

// fake is a Model whose logits depend on every token of a sequence, by default through a hash. A wrong token anywhere
// in a sequence changes the logits. Each step overwrites the logits of the step before.
type fake struct {
	vocab, capacity int
	sequences       [][]int
	logits          func(sequence []int) []float64

	returned  [][]float64
	steps     int
	given     int // total number of tokens given to Step
	reorders  int
	forgotten int
}

func newFake(batch, vocab int) *fake {
	m := &fake{vocab: vocab, capacity: math.MaxInt, sequences: make([][]int, batch)}
	m.logits = func(sequence []int) []float64 { return hashed(sequence, vocab) }
	return m
}

// hashed returns logits between −3 and 3.
func hashed(sequence []int, vocab int) []float64 { return hashedFrom(0, sequence, vocab) }

// hashedFrom is like hashed; logits also depend on the seed.
func hashedFrom(seed uint64, sequence []int, vocab int) []float64 {
	row := make([]float64, vocab)
	for i := range row {
		h := fnv.New64a()
		fmt.Fprint(h, sequence, i)
		row[i] = 6*rand.New(rand.NewPCG(h.Sum64(), seed)).Float64() - 3
	}
	return row
}

func (m *fake) Batch() int       { return len(m.sequences) }
func (m *fake) Vocab() int       { return m.vocab }
func (m *fake) Room(i int) int   { return m.capacity - len(m.sequences[i]) }
func (m *fake) held(i int) []int { return m.sequences[i] }

func (m *fake) Step(tokens [][]int) ([][]float64, error) {
	for _, row := range m.returned {
		for i := range row {
			row[i] = math.NaN()
		}
	}
	if len(tokens) != len(m.sequences) {
		return nil, fmt.Errorf("tokens for %d sequences, want %d", len(tokens), len(m.sequences))
	}
	m.steps++
	m.returned = make([][]float64, len(tokens))
	for i, row := range tokens {
		if len(row) == 0 {
			continue
		}
		if len(row) > m.Room(i) {
			return nil, fmt.Errorf("sequence %d has no room for %d tokens", i, len(row))
		}
		m.given += len(row)
		m.sequences[i] = append(m.sequences[i], row...)
		m.returned[i] = m.logits(m.sequences[i])
	}
	return m.returned, nil
}

func (m *fake) Reorder(parents []int) error {
	m.reorders++
	next := make([][]int, len(m.sequences))
	for i, parent := range parents {
		next[i] = slices.Clone(m.sequences[parent])
	}
	m.sequences = next
	return nil
}

func (m *fake) Forget(i int) error {
	m.forgotten++
	m.sequences[i] = nil
	return nil
}

// logSoftmax computes the plain formula, for logits of moderate size.
func logSoftmax(logits []float64) []float64 {
	total := 0.0
	for _, x := range logits {
		total += math.Exp(x)
	}
	out := make([]float64, len(logits))
	for i, x := range logits {
		out[i] = x - math.Log(total)
	}
	return out
}

const rounding = 1e-12 // tolerance for sums of a few float64

func near(a, b float64) bool { return within(rounding, a, b) }

func within(tol, a, b float64) bool { return math.Abs(a-b) <= tol*max(1, math.Abs(a), math.Abs(b)) }

// broken is a Model that returns logits of a wrong shape, or an error.
type broken struct {
	*fake
	rows [][]float64
	err  error
}

func (m broken) Step([][]int) ([][]float64, error) { return m.rows, m.err }

var errBroken = errors.New("broken")

// searches has Generate and Beam as functions with the same arguments.
var searches = map[string]func(t *testing.T, m decode.Model, prompts [][]int, maxTokens int, end []int) error{
	"Generate": func(t *testing.T, m decode.Model, prompts [][]int, maxTokens int, end []int) error {
		_, err := decode.Generate(t.Context(), m, prompts, decode.Options{MaxTokens: maxTokens, End: end})
		return err
	},
	"Beam": func(t *testing.T, m decode.Model, prompts [][]int, maxTokens int, end []int) error {
		_, err := decode.Beam(t.Context(), m, prompts, decode.BeamOptions{Width: 2, MaxTokens: maxTokens, End: end})
		return err
	},
}

func TestArguments(t *testing.T) {
	full := newFake(4, 5)
	full.capacity = 2
	tests := []struct {
		name    string
		model   decode.Model
		prompts [][]int
		max     int
		end     []int
		want    string
	}{
		{"no sequence", newFake(0, 5), [][]int{{1}}, 3, nil, "got 0 and 5"},
		{"no vocabulary", newFake(4, 0), [][]int{{1}}, 3, nil, "got 4 and 0"},
		{"no prompt", newFake(4, 5), nil, 3, nil, "no prompts"},
		{"an empty prompt", newFake(4, 5), [][]int{{1}, {}}, 3, nil, "prompt 1: a prompt must have at least one token"},
		{"too many prompts", newFake(4, 5), make([][]int, 5), 3, nil, "at least 5 prompts"},
		{"a negative token", newFake(4, 5), [][]int{{1, -1}}, 3, nil, "prompt 0: the token at position 1 must be from 0 to 4, got -1"},
		{"an unknown token", newFake(4, 5), [][]int{{5}}, 3, nil, "0 to 4, got 5"},
		{"MaxTokens 0", newFake(4, 5), [][]int{{1}}, 0, nil, "MaxTokens must be at least 1, got 0"},
		{"an unknown end", newFake(4, 5), [][]int{{1}}, 3, []int{2, 5}, "an end token must be from 0 to 4, got 5"},
		{"end -1", newFake(4, 5), [][]int{{1}}, 3, []int{-1}, "leave End empty for none"},
		{"no room", full, [][]int{{1}, {1, 2, 3}}, 3, nil, "prompt 1: sequence "},
		{"an error", broken{newFake(4, 5), nil, errBroken}, [][]int{{1}}, 3, nil, "a step of the model: broken"},
		{"too few rows", broken{newFake(4, 5), make([][]float64, 3), nil}, [][]int{{1}}, 3, nil, "must return 4 rows of logits, one for each sequence, got 3"},
		{"short rows", broken{newFake(4, 5), [][]float64{make([]float64, 4), nil, nil, nil}, nil}, [][]int{{1}}, 3, nil, "must return 5 logits, one for each token, got 4 for sequence 0"},
	}
	for _, tc := range tests {
		for name, search := range searches {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				must.Fail(t, search(t, tc.model, tc.prompts, tc.max, tc.end), "decode: ", tc.want)
			})
		}
	}
}

// TestErrorsOfSteps checks that an error of a search names the sequence, or wraps the model's error.
func TestErrorsOfSteps(t *testing.T) {
	for name, search := range searches {
		t.Run(name, func(t *testing.T) {
			if err := search(t, broken{newFake(4, 5), nil, errBroken}, [][]int{{1}}, 3, nil); !errors.Is(err, errBroken) {
				t.Errorf("got the error %v, want one that wraps %v", err, errBroken)
			}
			m := newFake(4, 5)
			m.logits = func(sequence []int) []float64 {
				row := hashed(sequence, 5)
				if sequence[0] == 1 {
					row[3] = math.Inf(1)
				}
				return row
			}
			must.Fail(t, search(t, m, [][]int{{0}, {1}}, 3, nil), "decode: ", " 1: a logit must be finite, or -Inf for a token that is never chosen, got +Inf for token 3")
		})
	}
}
