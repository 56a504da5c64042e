package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
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
	s, err := notebook.Attend(q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stage, printed string
		moved          float64
	}{
		{"Q·Kᵀ", printedProduct, movedProduct},
		{"Q·Kᵀ/√d_k", printedScaled, movedScaled},
		{"mask", printedZeroOne, 0},
		{"M", printedMask, 0},
		{"Q·Kᵀ/√d_k + M", printedMasked, movedScaled},
		{"Attention", printedAttention, movedWeights},
		{"New V", printedNewV, movedNewV},
		{"var(Q)", "0.6308301172110795", movedVariance},
		{"var(K)", "0.6869282803035538", movedVariance},
		{"var(Q·Kᵀ)", "3.05383269397103", movedVariance},
		{"var(Q·Kᵀ/√d_k)", "0.3817290867463787", movedVariance},
	} {
		golden.Check(t, c.stage, s.Values(c.stage), c.printed, c.moved)
	}
}

// TestMaskAsBias adds M to the scores, like the notebook. The results must be the same as with Causal.
func TestMaskAsBias(t *testing.T) {
	q, k, v := printedInputs()
	s, err := notebook.Attend(q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		t.Fatal(err)
	}
	g := G.NewGraph()
	st, err := layers.ScaledDotProductStages(&layers.Build{},
		notebook.Input(g, "Q", s.Get("Q")), notebook.Input(g, "K", s.Get("K")), notebook.Input(g, "V", s.Get("V")),
		layers.AttentionOptions{Mask: layers.Mask{Bias: notebook.Input(g, "M", s.Get("M"))}})
	if err != nil {
		t.Fatal(err)
	}
	var biased notebook.Stages
	biased.Add("Attention", st.Weights)
	biased.Add("New V", st.Output)
	if err := biased.Run(); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"Attention", "New V"} {
		if !slices.EqualFunc(s.Values(stage), biased.Values(stage), func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
			t.Errorf("%s is %v with Causal, %v with Bias", stage, s.Values(stage), biased.Values(stage))
		}
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	if err := run(&b, nil); err != nil {
		t.Fatal(err)
	}
	golden.Contains(t, b.String(), "Q\n"+printed["Q"], "K\n"+printed["K"], "V\n"+printed["V"], "mask\n"+printedZeroOne, "M\n"+printedMask, "Attention\n"+printedAttention)
	// The inputs are rounded, so the last digit of these tables may differ.
	golden.Holds(t, b.String(), "Q·Kᵀ", printedProduct, movedProduct)
	golden.Holds(t, b.String(), "Q·Kᵀ/√d_k", printedScaled, movedScaled)
	golden.Holds(t, b.String(), "Q·Kᵀ/√d_k + M", printedMasked, movedScaled)
	golden.Holds(t, b.String(), "New V", printedNewV, movedNewV)
}

// TestOwn compares the results for random inputs with plain sums.
func TestOwn(t *testing.T) {
	var b strings.Builder
	if err := run(&b, []string{"--seed", "5", "--words", "3", "--dk", "2", "--dv", "1"}); err != nil {
		t.Fatal(err)
	}
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

// Printed by the notebook.
const (
	printedProduct = `[[-0.4253449   0.99972615 -2.19259723  2.81501114]
 [ 2.39832175  0.66249943 -3.07122301  1.69257081]
 [ 1.27418179  1.25289575 -0.52408412 -1.61079679]
 [-2.44361728 -0.44453139  0.90005638  2.025787  ]]`

	printedScaled = `[[-0.15038213  0.35345657 -0.77520018  0.99525673]
 [ 0.84793479  0.23422892 -1.08584131  0.59841415]
 [ 0.45049129  0.44296554 -0.18529172 -0.56950267]
 [-0.86394918 -0.15716558  0.31821798  0.71622386]]`

	printedZeroOne = `[[1. 0. 0. 0.]
 [1. 1. 0. 0.]
 [1. 1. 1. 0.]
 [1. 1. 1. 1.]]`

	printedMask = `[[  0. -inf -inf -inf]
 [  0.   0. -inf -inf]
 [  0.   0.   0. -inf]
 [  0.   0.   0.   0.]]`

	printedMasked = `[[-0.15038213        -inf        -inf        -inf]
 [ 0.84793479  0.23422892        -inf        -inf]
 [ 0.45049129  0.44296554 -0.18529172        -inf]
 [-0.86394918 -0.15716558  0.31821798  0.71622386]]`

	printedAttention = `[[1.         0.         0.         0.        ]
 [0.6487857  0.3512143  0.         0.        ]
 [0.39650706 0.39353425 0.2099587  0.        ]
 [0.08972883 0.18192158 0.29264471 0.43570489]]`

	printedNewV = `[[-0.1166327   2.55035812 -0.358316   -0.19696865  0.17786032 -1.77182106
  -1.19170528  0.44545453]
 [-0.07511538  2.31008145 -1.21954119 -0.06365512  0.06633596 -0.93135608
  -1.28311037  0.16293552]
 [ 0.02286666  1.79578362 -1.37110767 -0.58204897 -0.13428966 -0.3183717
  -1.03698363 -0.20974531]
 [-0.46446442  0.38914755  0.08105999 -0.85655942 -0.19815209  0.21228037
   0.17143911 -0.17945943]]`
)
