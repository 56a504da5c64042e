package data

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// A step draws the same examples in any order of steps, on any goroutine, and in another Split with the same seed.
func TestTrainIsRandomAccess(t *testing.T) {
	s := newSplit(t, "reverse", 0, 7, 100)
	var sequence [][]string
	for step := range 60 {
		sequence = append(sequence, trainSources(t, s, step/20, step%20, 16))
	}
	again := newSplit(t, "reverse", 0, 7, 5)
	var wg sync.WaitGroup
	for step := range slices.Backward(sequence) {
		wg.Go(func() {
			if got := trainSources(t, again, step/20, step%20, 16); !slices.Equal(got, sequence[step]) {
				t.Errorf("step %d: got %q, want %q", step, got, sequence[step])
			}
		})
	}
	wg.Wait()
	if got := trainSources(t, s, 0, 0, 4); !slices.Equal(got, sequence[0][:4]) {
		t.Errorf("got the smaller batch %q, want the start of %q", got, sequence[0])
	}
	for i, a := range sequence {
		for j, b := range sequence[:i] {
			if slices.Equal(a, b) {
				t.Errorf("steps %d and %d draw the same sources", i, j)
			}
		}
	}
	if other := newSplit(t, "reverse", 0, 8, 100); slices.Equal(trainSources(t, other, 0, 0, 16), sequence[0]) || slices.Equal(other.Validation(), s.Validation()) {
		t.Error("two seeds draw the same sources")
	}
}

// A seed must draw the same sources in every release. Otherwise, a run resumed by a later release would train on
// validation sources.
func TestSplitIsStable(t *testing.T) {
	for _, tc := range []struct {
		seed   uint64
		source string
		want   uint64 // from an independent implementation
	}{
		{0, "", 0x5ba314b8cfda3b6b},
		{1, "lamp", 0x5cdaf3c806ddfaa5},
		{math.MaxUint64, "12+34", 0x4177ef76661d714},
		{7, "é", 0x4d8f341305b7fd3e},
	} {
		if got := hash(tc.seed, tc.source); got != tc.want {
			t.Errorf("hash(%d, %q) = %#x, want %#x", tc.seed, tc.source, got, tc.want)
		}
	}
	s := newSplit(t, "reverse", 0, 1, 3)
	if got, want := fmt.Sprint(sources(s.Validation())), "[thekbijnut cdezq ouuc]"; got != want {
		t.Errorf("got validation sources %v, want %v", got, want)
	}
	if got, want := fmt.Sprint(trainSources(t, s, 2, 3, 3)), "[lrscub jejll ozaw]"; got != want {
		t.Errorf("got training sources %v, want %v", got, want)
	}
}

// About one source in eight is held out, even if the sources are similar.
func TestHeldOutShare(t *testing.T) {
	for seed := range uint64(20) {
		held := heldOutSums(newSplit(t, "add", 0, seed, 1000))
		if held < 1100 || held > 1400 { // more than four standard deviations from 1250
			t.Errorf("seed %d holds out %d of 10,000 sums, want about 1250", seed, held)
		}
	}
}

// heldOutSums returns how many sums s holds out of all with numbers below 100.
func heldOutSums(s *Split) (held int) {
	for i := range 10_000 {
		if s.heldOut(fmt.Sprintf("%d+%d", i/100, i%100)) {
			held++
		}
	}
	return held
}

// If there are too few sources, the error says how many there are.
func TestNewSplitTooMany(t *testing.T) {
	t.Parallel()
	held := heldOutSums(newSplit(t, "add", 0, 1, 1))
	must.Refuse(NewSplit(named(t, "add", 0), 1, 2000))(t, fmt.Sprintf("validation asks for 2000 sources, but only %d were found", held))
	if whole := newSplit(t, "add", 0, 1, held); len(whole.Validation()) != held {
		t.Errorf("got %d sources, want all %d", len(whole.Validation()), held)
	}

	held = 0
	s := newSplit(t, "copy", 2, 1, 1)
	letters := named(t, "copy", 2).Alphabet
	for _, a := range letters {
		for _, b := range " " + letters {
			if s.heldOut(strings.TrimSpace(string(a) + string(b))) {
				held++
			}
		}
	}
	must.Refuse(NewSplit(named(t, "copy", 2), 1, 1000))(t, "task copy", "at most 2 symbols", fmt.Sprintf("but only %d were found: use a smaller number", held))
}

func TestNewSplitSizes(t *testing.T) {
	for _, validation := range []int{-1, math.MinInt, math.MaxInt} {
		must.Refuse(NewSplit(named(t, "copy", 0), 0, validation))(t, "validation must be from 0 to 1048576 sources", fmt.Sprint(validation))
	}
	s := newSplit(t, "copy", 0, 0, 1)
	for _, size := range []int{0, -5} {
		if got := trainSources(t, s, 0, 0, size); len(got) != 0 {
			t.Errorf("size %d: got %q, want no examples", size, got)
		}
	}
	for _, size := range []int{min(1<<40, math.MaxInt), math.MaxInt} {
		must.Refuse(s.Train(0, 0, size))(t, fmt.Sprintf("task copy: %d examples: this takes", size), "of memory, but there is only")
	}
	for _, maxLen := range []int{0, -1, longest + 1, math.MaxInt} {
		rule := named(t, "copy", 0)
		rule.MaxLen = maxLen
		rule.Sample = func(*rand.Rand, int) string { t.Fatalf("Sample was called with a MaxLen of %d", maxLen); return "" }
		must.Refuse(NewSplit(rule, 0, 1))(t, fmt.Sprintf("MaxLen must be from 1 to 16777216, got %d", maxLen))
	}
	if empty := newSplit(t, "copy", 0, 0, 0); len(empty.Validation()) != 0 || len(trainSources(t, empty, 0, 0, 3)) != 3 {
		t.Error("a Split without validation sources must still draw training examples")
	}
	s.Validation()[0].Source = "changed"
	if s.Validation()[0].Source == "changed" {
		t.Error("Validation must return a copy")
	}
}

// sources returns the sources of examples.
func sources(examples []Example) (sources []string) {
	for _, e := range examples {
		sources = append(sources, e.Source)
	}
	return sources
}

// trainSources returns the sources of a training step.
func trainSources(t testing.TB, s *Split, epoch, step, size int) []string {
	t.Helper()
	examples, err := s.Train(epoch, step, size)
	if err != nil {
		t.Error(err)
	}
	return sources(examples)
}

// NewSplit returns an error if a user's rule has no answer to a sample.
func TestSplitOfWrongRules(t *testing.T) {
	rule := named(t, "copy", 0)
	rule.Answer = func(source string) (string, error) { return "", errors.New("none today") }
	must.Refuse(NewSplit(rule, 1, 10))(t, "task copy: the source", "from Sample has no answer: none today")
}

func newSplit(t testing.TB, task string, maxLen int, seed uint64, validation int) *Split {
	t.Helper()
	return must.Get(NewSplit(named(t, task, maxLen), seed, validation))(t)
}

func BenchmarkTrain(b *testing.B) {
	s := newSplit(b, "reverse", 0, 1, 1000)
	for step := 0; b.Loop(); step++ {
		trainSources(b, s, 0, step, 64)
	}
}

func TestPlace(t *testing.T) {
	for i := range 20_000 {
		key := fmt.Sprint("source ", i)
		place := Place(3, key)
		if want := hash(3, key)>>61 == 0; (place < 1.0/8) != want || place < 0 || place >= 1 {
			t.Errorf("Place(%q) = %v, want a place from 0 to below 1, and below 1/8 as in a Split: %t", key, place, want)
		}
	}
}
