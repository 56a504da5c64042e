package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	// The notebook prints these two lines.
	if want := "Attention Weights Shape: (5, 10)\nWeighted Sum Shape: (5, 16)\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("the output doesn't end in\n%s\nbut is\n%s", want, &b)
	}
}

// TestWeights checks that the weights of each query sum to 1.
func TestWeights(t *testing.T) {
	s := must.Get(attend(1, 5, 10, 16))(t)
	for row := range slices.Chunk(s.Values("Attention Weights"), 10) {
		if sum := floats.Sum(row); math.Abs(sum-1) > 1e-12 {
			t.Errorf("the weights %v sum to %v, not 1", row, sum)
		}
	}
}

func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--queries", "2", "--keys", "1", "--dim", "3"}))
	golden.Contains(t, b.String(), "Attention Weights\n[[1.]\n [1.]]\n", "Attention Weights Shape: (2, 1)\nWeighted Sum Shape: (2, 3)\n")
	golden.Calls(t, run, []string{"--keys", "3"}, "-queries", "-keys", "-dim")
	golden.Picture(t, run)
}
