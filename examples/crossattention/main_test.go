package main

import (
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
)

func TestRun(t *testing.T) {
	var b strings.Builder
	if err := run(&b, nil); err != nil {
		t.Fatal(err)
	}
	// The notebook prints these two lines.
	if want := "Attention Weights Shape: (5, 10)\nWeighted Sum Shape: (5, 16)\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("the output doesn't end in\n%s\nbut is\n%s", want, &b)
	}
}

func TestOwn(t *testing.T) {
	var b strings.Builder
	if err := run(&b, []string{"--queries", "2", "--keys", "1", "--dim", "3"}); err != nil {
		t.Fatal(err)
	}
	golden.Contains(t, b.String(), "Attention Weights\n[[1.]\n [1.]]\n", "Attention Weights Shape: (2, 1)\nWeighted Sum Shape: (2, 3)\n")
	golden.Calls(t, run, []string{"--keys", "3"}, "-queries", "-keys", "-dim")
	golden.Picture(t, run)
}

// TestSteps computes attention in single steps, like the notebook: with queries from the first sequence, and keys and
// values from the second. The results must be the same.
func TestSteps(t *testing.T) {
	got, a, err := attend(1, 5, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	g := G.NewGraph()
	first := notebook.Input(g, "sequence 1", got.Get("sequence 1"))
	second := notebook.Input(g, "sequence 2", got.Get("sequence 2"))
	project := func(name string, x *G.Node, l *layers.Linear) *G.Node {
		return G.Must(G.Mul(x, G.Must(G.Transpose(notebook.Input(g, name, l.Weight.Value)))))
	}
	attention, err := layers.ScaledDotProductStages(&layers.Build{},
		project("w_q", first, a.Query), project("w_k", second, a.Key), project("w_v", second, a.Value), layers.AttentionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want notebook.Stages
	want.Add("Attention Weights", attention.Weights)
	want.Add("Weighted Sum", attention.Output)
	if err := want.Run(); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"Attention Weights", "Weighted Sum"} {
		for i, w := range want.Values(stage) {
			if g := got.Values(stage)[i]; math.Abs(g-w) > 1e-12 {
				t.Errorf("%s: number %d is %v, want %v", stage, i, g, w)
			}
		}
	}
	for row := range 5 {
		sum := 0.0
		for _, w := range got.Values("Attention Weights")[row*10:][:10] {
			sum += w
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("the weights of query %d sum to %v, not 1", row, sum)
		}
	}
}
