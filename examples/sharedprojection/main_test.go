package main

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
)

// The printed inputs are rounded to 8 decimals, so they are off by at most 5e-9. These bounds limit the effect on the
// results. A sum of 4 products x·w moves by at most 5e-9·Σ(|x|+|w|), here 2.7e-8. The bound is half of 2.7e-8, because
// errors mostly cancel. A softmax weight moves at most half as far as its scores.
const (
	movedProjection = 1.3e-8
	movedWeights    = 5e-9 / 2.4 / 2
)

func TestNotebook(t *testing.T) {
	right, _, err := attend(printedInputs())
	must.Do(t, err)
	golden.Check(t, "queries", right.Values("Q"), printed["Q"], movedProjection)
	golden.Check(t, "keys", right.Values("K"), printed["Q"], movedProjection) // the notebook prints the same numbers
	golden.Check(t, "values", right.Values("V"), printed["V"], movedProjection)

	earlier := must.Get(notebook.AttendScores(notebook.Printed(printed["earlier scores"], 3, 3), 1/math.Sqrt(6)))(t)
	golden.Check(t, "attention weights", earlier.Values("Attention"), printed["earlier weights"], movedWeights)
}

// TestNotebookDisagrees checks that the notebook's numbers contradict each other, because its cells were run out of
// order.
func TestNotebookDisagrees(t *testing.T) {
	right, _, err := attend(printedInputs())
	must.Do(t, err)
	scores := must.Get(notebook.Numbers(printed["earlier scores"]))(t)
	for i, got := range right.Values("Q·Kᵀ") {
		if math.Abs(got-scores[i]) < 0.5 {
			t.Errorf("score %d from the printed Q and K is %v, want a number far from %v, the score of the earlier run", i, got, scores[i])
		}
	}
	// A context vector is a mean of the values, so each of its numbers is between the minimum and maximum of the
	// column. In columns 0, 2 and 3, no printed context vector is within these limits.
	context := must.Get(notebook.Numbers(printed["earlier context"]))(t)
	v, got := right.Values("V"), right.Values("context")
	const n, dV = 3, 5
	for column := range dV {
		least, largest := min(v[column], v[dV+column], v[2*dV+column]), max(v[column], v[dV+column], v[2*dV+column])
		for i := column; i < n*dV; i += dV {
			if got[i] < least || got[i] > largest {
				t.Errorf("context number %d is %v, want %v to %v, as the values", i, got[i], least, largest)
			}
			if possible := context[i] >= least && context[i] <= largest; possible != (column == 1 || column == 4) {
				t.Errorf("context number %d is printed as %v, want it outside %v to %v, the range of the values", i, context[i], least, largest)
			}
		}
	}
}

// TestRight compares the results with numbers that were computed separately, with plain sums in double precision.
func TestRight(t *testing.T) {
	right, learned, err := attend(printedInputs())
	must.Do(t, err)
	golden.Check(t, "scores", right.Values("Q·Kᵀ"), rightScores, 0)
	golden.Check(t, "attention weights", right.Values("weights"), rightWeights, 0)
	golden.Check(t, "context vectors", right.Values("context"), rightContext, 0)

	if got := strings.Join(learned, " "); got != "query.weight value.weight" {
		t.Errorf("the graph learns %q, want queries and keys to share one weight", got)
	}
	s := right.Values("Q·Kᵀ")
	for i := range 3 {
		for j := range i {
			if math.Abs(s[i*3+j]-s[j*3+i]) > 1e-14 {
				t.Errorf("scores %v and %v at (%d, %d) and its mirror image differ, want symmetric scores for W_q = W_k", s[i*3+j], s[j*3+i], i, j)
			}
		}
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	golden.Contains(t, b.String(),
		"Input tokens\n"+printed["X"]+"\nShape of input tokens:  (3, 4)\n",
		"Weights for query and key projections vectors\n"+printed["W_qk"]+"\nShape of weights for query and key  projection vectors:  (4, 6)\n",
		"Weights for value  projection vector\n"+printed["W_v"]+"\nShape of weights for value projection vector:  (4, 5)\n",
		"Query vectors\n", "Shape of query vectors:  (3, 6)\n",
		"Key vectors\n", "Shape of key vectors:  (3, 6)\n",
		"Value vectors\n", "Shape of value vectors:  (3, 5)\n",
		"Similarity scores\n", "Shape of similarity scores:  (3, 3)\n",
		"Attention weights\n", "Shape of attention weights:  (3, 3)\n",
		"Context vectors\n", "Shape of context vectors:  (3, 5)\n",
		"Similarity scores\n"+printed["earlier scores"], "Attention weights\n"+printed["earlier weights"], "which don't follow from its printed numbers\n"+printed["earlier context"])
	golden.Holds(t, b.String(), "Query vectors", printed["Q"], movedProjection)
	golden.Holds(t, b.String(), "Key vectors", printed["Q"], movedProjection)
	golden.Holds(t, b.String(), "Value vectors", printed["V"], movedProjection)
	golden.Holds(t, b.String(), "Similarity scores", rightScores, 0)
	golden.Holds(t, b.String(), "Attention weights", rightWeights, 0)
	golden.Holds(t, b.String(), "Context vectors", rightContext, 0)
}

// TestOwn checks that with one random token, the context vector is the token's value.
func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--tokens", "1", "--dim", "2", "--dk", "1", "--dv", "1"}))
	x, w := golden.Table(t, b.String(), "Input tokens"), golden.Table(t, b.String(), "Weights for value  projection vector")
	if got, want := golden.Table(t, b.String(), "Context vectors")[0], x[0]*w[0]+x[1]*w[1]; math.Abs(got-want) > 1e-7 {
		t.Errorf("the context vector is %v, want %v", got, want)
	}
	golden.Contains(t, b.String(), "Shape of weights for query and key  projection vectors:  (2, 1)\n")
	golden.Calls(t, run, []string{"--tokens", "2"}, "-tokens", "-dim", "-dk", "-dv")
	golden.Picture(t, run)
}

const (
	rightScores = `[[5.99274977 7.56016158 5.07029108]
 [7.56016158 9.99523720 6.80166571]
 [5.07029108 6.80166571 4.73477765]]`

	rightWeights = `[[0.27913669 0.52932086 0.19154244]
 [0.22542662 0.60917779 0.16539558]
 [0.25643990 0.51994606 0.22361404]]`

	rightContext = `[[0.71670159 1.12271738 0.32176179 0.51287808 1.48077634]
 [0.73423515 1.14453594 0.31366944 0.52139583 1.53464812]
 [0.71135062 1.12396743 0.31604842 0.50362350 1.48031282]]`
)
