package main

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// The printed inputs are rounded to 8 decimals, so they are off by at most 5e-9. These bounds limit the effect on the
// results. A sum of 8 products moves by at most 5e-9·Σ(|q|+|k|), which is 7e-8 for the largest rows here. The bound is
// a third of 7e-8, because errors mostly cancel. Scaling divides the bound by √8. A weight moves at most half as far as
// its scores. A new value moves at most as far as a weight, times the largest value, 2.8. A variance is a mean over
// many such errors.
const (
	movedProduct  = 2.5e-8
	movedScaled   = movedProduct / 2.8
	movedWeights  = movedScaled / 2
	movedNewV     = movedWeights * 2.8
	movedVariance = 5e-9
)

func TestNotebook(t *testing.T) {
	q, k, v := printedInputs()
	s := must.Get(notebook.Attend(q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}}))(t)
	for stage, moved := range map[string]float64{
		"Q·Kᵀ": movedProduct, "Q·Kᵀ/√d_k": movedScaled, "mask": 0, "M": 0, "Q·Kᵀ/√d_k + M": movedScaled, "Attention": movedWeights, "New V": movedNewV,
		"var(Q)": movedVariance, "var(K)": movedVariance, "var(Q·Kᵀ)": movedVariance, "var(Q·Kᵀ/√d_k)": movedVariance,
	} {
		golden.Check(t, stage, s.Values(stage), printed[stage], moved)
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	for _, stage := range []string{"Q", "K", "V", "mask", "M", "Attention"} {
		golden.Contains(t, "\n"+b.String(), "\n"+stage+"\n"+printed[stage]+"\n")
	}
	// The inputs are rounded, so the last digit of these tables may differ.
	for stage, moved := range map[string]float64{"Q·Kᵀ": movedProduct, "Q·Kᵀ/√d_k": movedScaled, "Q·Kᵀ/√d_k + M": movedScaled, "New V": movedNewV} {
		golden.Holds(t, b.String(), stage, printed[stage], moved)
	}
}

// TestOwn compares the results for random inputs with plain sums.
func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--seed", "5", "--words", "3", "--dk", "2", "--dv", "1"}))
	table := func(heading string) []float64 { return golden.Table(t, b.String(), heading) }
	q, k, v, weights, newV := table("Q"), table("K"), table("V"), table("Attention"), table("New V")
	for i := range 3 {
		var w [3]float64
		sum, value := 0.0, 0.0
		for j := range i + 1 {
			w[j] = math.Exp((q[2*i]*k[2*j] + q[2*i+1]*k[2*j+1]) / math.Sqrt2)
			sum += w[j]
			value += w[j] * v[j]
		}
		for j := range w {
			if got, want := weights[3*i+j], w[j]/sum; math.Abs(got-want) > 1e-7 {
				t.Errorf("word %d attends to word %d with %v, want %v", i, j, got, want)
			}
		}
		if math.Abs(newV[i]-value/sum) > 1e-7 {
			t.Errorf("the new value of word %d is %v, want %v", i, newV[i], value/sum)
		}
	}
	golden.Calls(t, run, []string{"--words", "1"}, "-words", "-dk", "-dv")
	golden.Picture(t, run)
}
