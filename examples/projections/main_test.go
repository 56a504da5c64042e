package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

var defaults = sizes{tokens: 10, dim: 16, heads: 3}

// The printed scores are rounded to 9 digits, so their error is at most 5e-11. A weight's error is at most half of it.
const movedWeights = 2.5e-11

func TestNotebook(t *testing.T) {
	s := must.Get(notebook.AttendScores(notebook.Printed(printed["scores"], 5, 10), 1))(t)
	golden.Check(t, "attention weights", s.Values("Attention"), printed["weights"], movedWeights)
}

// TestBrokenRow checks the sixth row, where the notebook prints eight scores and all weights. The softmax over eight
// keys is the softmax over all ten, divided by the sum of the eight weights.
func TestBrokenRow(t *testing.T) {
	const keys = 8
	whole := printed["broken row"][:strings.LastIndex(printed["broken row"], "\n")] // without the number that is cut off
	scores := notebook.Printed(whole, 1, keys)
	weights := must.Get(notebook.Numbers("0.09944609 0.09944609 0.10067809 0.09904394 0.1016224  0.10001574 0.09890862 0.09937421"))(t)
	s := must.Get(notebook.AttendScores(scores, 1))(t)
	share := 0.0
	for _, w := range weights {
		share += w
	}
	for i, got := range s.Values("Attention") {
		// Allow half a unit of the 8th decimal for the weight, and half a unit for the sum of the printed weights.
		if math.Abs(got*share-weights[i]) > 1e-8 {
			t.Errorf("weight %d is %v, printed as %v", i, got*share, weights[i])
		}
	}
}

// TestOtherNumbers checks the notebook's numbers that can't be computed: whole rows of weights sum to 1, and
// tokens 0 and 1, which are the same, have equal rows.
func TestOtherNumbers(t *testing.T) {
	rows := func(table string, width int) [][]float64 {
		numbers, err := notebook.Numbers(table[:strings.LastIndex(table, " ")]) // the last number is cut off
		must.Do(t, err)
		return slices.Collect(slices.Chunk(numbers, width))
	}
	for i, row := range rows(printed["last weights"], 10) {
		sum := 0.0
		for _, weight := range row {
			sum += weight
		}
		if len(row) == 10 && math.Abs(sum-1) > 5e-8 {
			t.Errorf("the weights of row %d sum to %v, want 1", 5+i, sum)
		}
	}
	sums, queries := rows(printed["sum"], 16), rows(printed["queries"], 16)
	second, err := notebook.Numbers(printed["second"])
	if err != nil || !slices.Equal(sums[0], sums[1]) || !slices.Equal(second, sums[1]) || !slices.Equal(queries[0], queries[1]) {
		t.Errorf("%v: the rows of two equal tokens differ", err)
	}
}

// TestSameToken checks that tokens 0 and 1, which are the same, have the same rows in all tables.
func TestSameToken(t *testing.T) {
	s := must.Get(oneHead(1, defaults))(t)
	for _, stage := range []string{"embeddings", "Q", "K", "V", "Attention Weights", "Weighted Sum"} {
		v := s.Values(stage)
		n := len(v) / defaults.tokens
		if !slices.Equal(v[:n], v[n:2*n]) {
			t.Errorf("%s: row 0 is %v and row 1 is %v, want equal rows", stage, v[:n], v[n:2*n])
		}
	}
	for i, row := 0, s.Values("Attention Weights"); i < len(row); i += defaults.tokens {
		if row[i] != row[i+1] {
			t.Errorf("row %d has weight %v for token 0 and %v for token 1, want equal weights", i/defaults.tokens, row[i], row[i+1])
		}
	}
}

// TestHeads checks that each of the three heads gives the same results as a layer with a single head and the same
// weights.
func TestHeads(t *testing.T) {
	s := must.Get(severalHeads(1, defaults))(t)
	var split [3]*tensor.Dense // queries, keys, values: (H, T, D)
	for i, name := range []string{"Q", "K", "V"} {
		split[i] = splitHeads(s.Get(name), 3)
	}
	const tokens, dim = 10, 16
	const perHead, perWeight = tokens * dim, dim * dim
	for h := range defaults.heads {
		g := G.NewGraph()
		x := notebook.Input(g, "embeddings", s.Get("embeddings"))
		var qkv [3]*G.Node
		var want notebook.Stages
		for i, name := range []string{"w_q", "w_k", "w_v"} {
			w := headWeights(1, defaults)[i].Data().([]float64)[h*perWeight:][:perWeight]
			qkv[i] = G.Must(G.Mul(x, G.Must(G.Transpose(notebook.Input(g, name, notebook.Matrix(dim, dim, w...))))))
			want.Add(name, qkv[i])
		}
		attention := must.Get(layers.ScaledDotProductStages(&layers.Build{}, qkv[0], qkv[1], qkv[2], layers.AttentionOptions{}))(t)
		want.Add("weights", attention.Weights)
		want.Add("sum", attention.Output)
		must.Do(t, want.Run())
		for i, name := range []string{"w_q", "w_k", "w_v"} {
			near(t, name, split[i].Data().([]float64)[h*perHead:][:perHead], want.Values(name))
		}
		near(t, "weights", s.Values("Attention Weights")[h*tokens*tokens:][:tokens*tokens], want.Values("weights"))
		sums := splitHeads(s.Get("Weighted Sum"), 3)
		near(t, "weighted sum", sums.Data().([]float64)[h*perHead:][:perHead], want.Values("sum"))
	}
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-13 }) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	golden.Contains(t, b.String(),
		"Attention Scores\n"+strings.TrimSuffix(printed["scores"], "]"), printed["broken row"], "Attention Weights\n"+printed["weights"],
		"Its other numbers don't follow from those that it prints.",
		"embed_size: 16\n",
		"w_q Shape : (16, 16)\n", "w_k Shape : (16, 16)\n", "w_v Shape : (16, 16)\n",
		"Q Shape : (10, 16)\n", "K Shape : (10, 16)\n", "V Shape : (10, 16)\n",
		"Attention Scores\n", "Shape : (10, 10)\n", "Attention Weights\n", printed["last weights"], "Shape : (10, 10)\n", "Weighted Sum\n", printed["sum"], "Shape : (10, 16)\n", printed["second"],
		"Heads: 3\nembeddings Shape : (10, 16)\n", "Queries\n[[[", printed["queries"],
		"Queries Shape : (3, 10, 16)\n", "Keys Shape : (3, 10, 16)\n", "Values Shape : (3, 10, 16)\n")
}

// TestOwn checks that the weight of a single token is 1.
func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--tokens", "1", "--dim", "2", "--heads", "2"}))
	golden.Contains(t, b.String(), "V Shape : (1, 2)\n", "Attention Weights\n[[1.]]\n", "Queries Shape : (2, 1, 2)\n")
	golden.Calls(t, run, []string{"--dim", "3"}, "-tokens", "-dim", "-heads")
}
