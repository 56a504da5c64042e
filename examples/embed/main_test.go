package main

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains to the end")
	}
	var b strings.Builder
	must.Do(t, run(&b, nil))
	must.Have(t, b.String(), "Step   0: loss ", "Step 299: loss 0.0", "6 of 6 right.", "position 2? f")
}

// TestLearns checks that the loss starts near ln 8 = 2.08, the loss of guessing, and falls. Each query must attend to
// the position that it asks for.
func TestLearns(t *testing.T) {
	steps := 300
	if testing.Short() {
		steps = 150
	}
	m := newModel(1, 6, 16)
	losses := must.Get(m.fit(io.Discard, 1, steps))(t)
	if first := losses[0]; math.Abs(first-math.Log(8)) > 0.5 {
		t.Errorf("the first loss is %v, want about %v", first, math.Log(8))
	}
	if last := losses[steps-1]; last > 0.5 {
		t.Errorf("the last loss is too high: %v", last)
	}
	stored := []int{0, 7, 1, 6, 2, 5} // new letters
	predicted, weights, err := m.lookUp(stored)
	must.Do(t, err)
	if !slices.Equal(predicted, stored) {
		t.Errorf("predicted %v, want the stored letters %v", predicted, stored)
	}
	for i := range stored {
		if got := weights[i*len(stored)+i]; got < 0.6 {
			t.Errorf("the query for position %d attends to this position with %v, want at least 0.6", i, got)
		}
	}
}

func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--stored", "dad", "--dim", "4", "--steps", "31"}))
	golden.Contains(t, b.String(), "Step   0: loss ", "Step  30: loss ", " of 3 right.", "0: d", "1: a", "2: d", "position 2? ")
	golden.Calls(t, run, []string{"--stored", "a", "--steps", "2"}, "-dim", "-steps")
	golden.Picture(t, run)
	for _, word := range []string{"", "hi", "A", strings.Repeat("a", 33), "bé"} {
		var call *example.CallError
		if err := run(io.Discard, []string{"--stored", word}); !errors.As(err, &call) || !strings.Contains(err.Error(), "\n  -stored LETTERS\n") {
			t.Errorf("%q: got %v, want a *CallError that lists the flags", word, err)
		}
	}
}
