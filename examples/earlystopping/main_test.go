package main

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
)

// What the rounding of the printed products to 8 decimals, so by 5e-9 at most, can move the results by: the scaling divides
// it by √8, and a weight moves by half of what its scores do at most. A variance moves by 2|x|/16 times as much for each
// number, but the signs cancel.
const (
	movedScaled   = 5e-9 / 2.8
	movedWeights  = movedScaled / 2
	movedVariance = 5e-9
)

func TestNotebook(t *testing.T) {
	s, err := attend()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stage, printed string
		moved          float64
	}{
		{"var(Q·Kᵀ)", "4.696035782038038", movedVariance},
		{"var(Q·Kᵀ/√d_k)", "0.5870044727547546", movedVariance},
		{"Q·Kᵀ/√d_k", printedScaled, movedScaled},
		{"Attention", printedAttention, movedWeights},
	} {
		golden.Check(t, c.stage, s.Values(c.stage), c.printed, c.moved)
	}
	// The notebook doesn't print the new values, but the first word sees itself alone.
	golden.Check(t, "New V, row 0", s.Values("New V")[:8],
		"-1.45501613 1.12104651 0.1601064 -0.64056377 -1.44402873 0.79275413 1.72701777 -0.18697646", 0)
}

func TestRun(t *testing.T) {
	var b strings.Builder
	if err := run(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{printedV, printedProduct, printedAttention, `
Epoch 0: Train=0.457, Val=0.300
Epoch 1: Train=0.647, Val=0.378
Epoch 2: Train=0.628, Val=0.346
Early stopping at epoch 2
`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the output lacks\n%s\nin\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "Epoch 3") {
		t.Error("it went on after stopping")
	}
}

// What the notebook prints.
const (
	printedScaled = `[[ 0.18030033  0.27815229  0.58163381  1.0990439 ]
 [ 1.40740762  0.26867762  0.77463158 -0.56502722]
 [-0.30380383  0.11832706  0.32336056 -0.15133676]
 [ 0.22502736  1.4743893   0.38282681  2.62960696]]`

	printedAttention = `[[1.         0.         0.         0.        ]
 [0.75744639 0.24255361 0.         0.        ]
 [0.22740183 0.34683511 0.42576306 0.        ]
 [0.05976278 0.20845956 0.06997812 0.66179954]]`
)
