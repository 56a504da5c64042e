package main

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

// The printed products are rounded to 8 decimals, so they are off by at most 5e-9. These bounds limit the effect on the
// results. Scaling divides the error by √8, and a weight moves at most half as far as its scores. An error in a product
// x moves the variance by 2|x|/16 times the error, but errors mostly cancel.
const (
	movedScaled   = 5e-9 / 2.8
	movedWeights  = movedScaled / 2
	movedVariance = 5e-9
)

func TestNotebook(t *testing.T) {
	s := must.Get(attendPrinted())(t)
	for stage, moved := range map[string]float64{
		"var(Q·Kᵀ)": movedVariance, "var(Q·Kᵀ/√d_k)": movedVariance, "Q·Kᵀ/√d_k": movedScaled, "mask": 0, "Q·Kᵀ/√d_k + M": movedScaled, "Attention": movedWeights,
	} {
		golden.Check(t, stage, s.Values(stage), printed[stage], moved)
	}
	// The notebook doesn't print the new values, but the first word sees only itself.
	golden.Check(t, "New V, row 0", s.Values("New V")[:8],
		"-1.45501613 1.12104651 0.1601064 -0.64056377 -1.44402873 0.79275413 1.72701777 -0.18697646", 0)
}

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	golden.Contains(t, b.String(), "The notebook's var(Q) 0.990742029467248 and var(K) 0.9085049295453562 can't be computed, because", "var(Q): ", "var(K): ", "V\n"+printed["V"], "Q·Kᵀ\n"+printed["Q·Kᵀ"], "mask\n"+printed["mask"], "Attention\n"+printed["Attention"], `
d_k: 8

Epoch 0: Train=0.457, Val=0.300
Epoch 1: Train=0.647, Val=0.378
Epoch 2: Train=0.628, Val=0.346
Early stopping at epoch 2
The best was epoch 0, with Val=0.300
`)
	golden.Holds(t, b.String(), "Q·Kᵀ/√d_k", printed["Q·Kᵀ/√d_k"], movedScaled)
	golden.Holds(t, b.String(), "Q·Kᵀ/√d_k + M", printed["Q·Kᵀ/√d_k + M"], movedScaled)
}

func TestStopEarly(t *testing.T) {
	for _, c := range []struct {
		name     string
		val      []float64
		patience int
		want     string // end of the output
	}{
		{"a loss equal to the best is no improvement", []float64{0.5, 0.5, 0.5, 0.1}, 2, "Val=0.500\nEarly stopping at epoch 2\nThe best was epoch 0, with Val=0.500\n"},
		{"a lower loss is an improvement", []float64{0.5, 0.6, 0.4, 0.5, 0.3}, 2, "Epoch 4: Train=0.000, Val=0.300\nThe best was epoch 4, with Val=0.300\n"},
		{"patience of 1", []float64{0.5, 0.6, 0.4}, 1, "Early stopping at epoch 1\nThe best was epoch 0, with Val=0.500\n"},
	} {
		var epochs []losses
		for _, v := range c.val {
			epochs = append(epochs, losses{val: v})
		}
		var b strings.Builder
		if err := stopEarly(&b, epochs, c.patience, ""); err != nil || !strings.HasSuffix(b.String(), c.want) {
			t.Errorf("%s: got\n%s\nand %v, want it to end in\n%s", c.name, &b, err, c.want)
		}
	}
}

func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--words", "2", "--dk", "1", "--dv", "3", "--epochs", "5", "--patience", "9"}))
	table := func(heading string) []float64 { return golden.Table(t, b.String(), heading) }
	q, k, v := table("Q"), table("K"), table("V")
	first := 1 / (1 + math.Exp(q[1]*(k[1]-k[0]))) // the second word's weight for the first
	for j, got := range table("New V")[3:] {
		if want := first*v[j] + (1-first)*v[3+j]; math.Abs(got-want) > 1e-7 {
			t.Errorf("number %d of the second word's new value is %v, want %v", j, got, want)
		}
	}
	if strings.Count(b.String(), "Epoch ") != 5 || strings.Contains(b.String(), "Early stopping") {
		t.Errorf("5 epochs with a patience of 9 printed this, want 5 epochs and no early stopping:\n%s", &b)
	}
	golden.Calls(t, run, []string{"--patience", "3"}, "-words", "-dk", "-dv", "-epochs", "-patience")
	golden.Picture(t, run)
}
