package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
)

// The notebook gives scores but not their softmax: these rows were computed by themselves, with plain sums.
func TestScores(t *testing.T) {
	s, err := attendScores()
	if err != nil {
		t.Fatal(err)
	}
	w := s.Values("weights")
	golden.Check(t, "The", w[:n], "0.18411608 0.16452564 0.15650163 0.15847018 0.18182895 0.15455753", 0)
	golden.Check(t, "cat", w[n:2*n], "0.14763196 0.1919476  0.21480324 0.13868739 0.14579805 0.16113176", 0)

	// The notebook's illustration isn't the softmax of these scores, but "cat" does attend to "sat" the most in both.
	illustration := []float64{0.05, 0.15, 0.65, 0.03, 0.07, 0.05}
	cat := w[n : 2*n]
	if slices.Index(cat, slices.Max(cat)) != slices.Index(illustration, slices.Max(illustration)) {
		t.Errorf("\"cat\" attends by %v, which isn't the most to \"sat\"", cat)
	}
	if math.Abs(cat[2]-illustration[2]) < 0.4 {
		t.Errorf("\"cat\" attends to \"sat\" by %v, near the illustration's %v", cat[2], illustration[2])
	}
}

func TestAttend(t *testing.T) {
	s, err := attend(strings.Fields(sentence))
	if err != nil {
		t.Fatal(err)
	}
	for row := range n {
		sum := 0.0
		for _, w := range s.Values("weights")[row*n:][:n] {
			sum += w
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("the weights of token %d sum to %v, not 1", row, sum)
		}
	}
	// A word that comes twice has one embedding: "the" is another word than "The".
	if x := s.Values("X"); slices.Equal(x[:dModel], x[4*dModel:5*dModel]) {
		t.Error("The and the have the same embedding")
	}
	s, err = attend(strings.Fields("a rose is a rose too"))
	if err != nil {
		t.Fatal(err)
	}
	if out := s.Values("output"); !slices.Equal(out[:dK], out[3*dK:4*dK]) {
		t.Error("nothing tells positions apart here, but two uses of a word have other outputs")
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	if err := run(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Tokens: ["The" "cat" "sat" "on" "the" "mat"]`,
		"X has shape (6, 512)\nQ has shape (6, 64)\nK has shape (6, 64)\nV has shape (6, 64)\n",
		"Output has shape (6, 64)\n",
		"cat  1.10  3.20  4.10  0.60  1.00  1.80\n",
		"      The   cat   sat    on   the   mat\nThe  0.18  0.16  0.16  0.16  0.18  0.15\ncat  0.15  0.19  0.21  0.14  0.15  0.16\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the output lacks\n%s\nin\n%s", want, &b)
		}
	}
}
