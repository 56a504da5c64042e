package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
)

// The printed inputs are rounded to 8 decimals, so they are off by at most 5e-9. These bounds limit the effect on the
// results. A sum of 8 products moves by at most 5e-9·Σ(|q|+|k|), which is 7e-8 for the largest rows here. The bound is
// a third of 7e-8, because errors mostly cancel. Scaling divides the bound by √8. A weight of the whole matrix, at most
// 0.18, moves at most 0.3 times as far as the scores. A new value moves at most as far as a weight, times the largest
// value, 2.2. A variance is a mean over many such errors, each times twice a number.
const (
	movedProduct  = 2.5e-8
	movedScaled   = movedProduct / 2.8
	movedWeights  = movedScaled * 0.3
	movedNewV     = movedWeights * 2.2
	movedVariance = 5e-9
)

// attend returns the stages of attention, and the weights and new values of both softmaxes, for the notebook's inputs.
func attend(t *testing.T) (rows, right, whole *notebook.Stages) {
	t.Helper()
	q, k, v := printedInputs()
	rows = must.Get(notebook.Attend(q, k, v, causal))(t)
	right = must.Get(mix(rows.Get("Attention"), v))(t)
	whole = must.Get(wholeMatrix(rows.Get("Q·Kᵀ/√d_k + M"), v))(t)
	return rows, right, whole
}

func TestNotebook(t *testing.T) {
	rows, right, whole := attend(t)
	for stage, moved := range map[string]float64{
		"Q·Kᵀ": movedProduct, "var(Q)": movedVariance, "var(K)": movedVariance, "var(Q·Kᵀ)": movedProduct,
		"var(Q·Kᵀ/√d_k)": movedVariance, // the notebook prints this as normalized.var()
		"Q·Kᵀ/√d_k":      movedScaled, "M": 0, "Q·Kᵀ/√d_k + M": movedScaled,
	} {
		golden.Check(t, stage, rows.Values(stage), printed[stage], moved)
	}
	for i, got := range right.Values("New V") { // the notebook doesn't multiply these weights
		if want := rows.Values("New V")[i]; math.Abs(got-want) > 1e-15 {
			t.Errorf("new V, number %d, is %v, want the output of attention, %v", i, got, want)
		}
	}
	golden.Check(t, "weights", whole.Values("Weights"), printed["Weights"], movedWeights)

	// Row 0 and six columns of row 1 follow from printed numbers of V. The other numbers of V were computed from these
	// new values.
	golden.Check(t, "new V", whole.Values("New V"), printed["New V"], movedNewV)
}

// TestSums checks that the weights of each row sum to 1 and, for the notebook's first softmax, that rows sum to 0.08 to
// 0.36 and the whole matrix to 1.
func TestSums(t *testing.T) {
	_, rows, whole := attend(t)
	golden.Check(t, "sums over the whole matrix", whole.Values("Row sums"), "0.0780 0.3135 0.2472 0.3613", 0)
	total := 0.0
	for i, sum := range whole.Values("Row sums") {
		total += sum
		if row := rows.Values("Row sums")[i]; math.Abs(row-1) > 1e-15 {
			t.Errorf("the softmax of row %d sums to %v, want 1", i, row)
		}
		// A row of the wrong new V is the right row times the sum of the wrong weights.
		for j := 8 * i; j < 8*i+8; j++ {
			wrong, right := whole.Values("New V")[j], rows.Values("New V")[j]
			if math.Abs(wrong-sum*right) > 1e-14 {
				t.Errorf("new V, number %d, is %v over the whole matrix, want %v times %v", j, wrong, sum, right)
			}
		}
	}
	if math.Abs(total-1) > 1e-15 {
		t.Errorf("the whole matrix sums to %v, want 1", total)
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	golden.Contains(t, b.String(), "Q\n"+printed["Q"], "K\n"+printed["K"], "The notebook prints 14 numbers of V.", "V\n"+printed["V"], "mask\n"+printed["mask"], "M\n"+printed["M"],
		"wrong:\nWeights\n"+printed["Weights"], "right:\nWeights\n", "closing cell", "Q\n"+printed["closing Q"], "K\n"+printed["closing K"], printed["closing V"], printed["closing V"], "Weights\n")
	golden.Holds(t, b.String(), "Q·Kᵀ", printed["Q·Kᵀ"], movedProduct)
	golden.Holds(t, b.String(), "Q·Kᵀ/√d_k", printed["Q·Kᵀ/√d_k"], movedScaled)
	golden.Holds(t, b.String(), "Q·Kᵀ/√d_k + M", printed["Q·Kᵀ/√d_k + M"], movedScaled)
	golden.Holds(t, b.String(), "New V", printed["New V"], movedNewV)

	// The weights of the closing cell were computed separately, with plain sums.
	_, closing, _ := strings.Cut(b.String(), "closing cell")
	golden.Holds(t, closing, "Weights", `[[1.00000000 0 0 0]
 [0.55456921 0.44543079 0 0]
 [0.38303625 0.36668508 0.25027867 0]
 [0.23025927 0.25128354 0.27856753 0.23988965]]`, 0)
}

// TestOwn compares both kinds of weights for random inputs with plain sums.
func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--words", "2", "--dk", "1", "--dv", "3"}))
	scores := golden.Table(t, b.String(), "Q·Kᵀ/√d_k")
	whole, rows, _ := strings.Cut(b.String(), "Softmax of each row")
	e := [3]float64{math.Exp(scores[0]), math.Exp(scores[2]), math.Exp(scores[3])} // scores that aren't masked
	for _, c := range []struct {
		name      string
		got, want []float64
	}{
		{"whole matrix", golden.Table(t, whole, "Weights"), []float64{e[0] / (e[0] + e[1] + e[2]), 0, e[1] / (e[0] + e[1] + e[2]), e[2] / (e[0] + e[1] + e[2])}},
		{"rows", golden.Table(t, rows, "Weights"), []float64{1, 0, e[1] / (e[1] + e[2]), e[2] / (e[1] + e[2])}},
	} {
		if !slices.EqualFunc(c.got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-7 }) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if strings.Contains(b.String(), "closing cell") || strings.Contains(b.String(), "notebook") {
		t.Errorf("with random inputs, the program still shows the notebook's numbers:\n%s", &b)
	}
	golden.Calls(t, run, []string{"--words", "3"}, "-words", "-dk", "-dv")
	golden.Picture(t, run)
}
