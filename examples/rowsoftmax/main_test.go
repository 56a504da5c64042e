package main

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
)

// What the rounding of the printed inputs to 8 decimals can move the results by. A sum of 8 products with both factors
// 5e-9 off at most is 5e-9·Σ(|q|+|k|) off at most, which is 7e-8 for the largest rows here; such errors mostly cancel,
// and a third of that is allowed. The scaling divides it by √8, a weight of the whole matrix, 0.18 at most, moves by 0.3 of
// what the scores do at most, and the new values by that times the values, which reach 2.2. A variance is a mean over many
// such errors, times twice the numbers.
const (
	movedProduct  = 2.5e-8
	movedScaled   = movedProduct / 2.8
	movedWeights  = movedScaled * 0.3
	movedNewV     = movedWeights * 2.2
	movedVariance = 5e-9
)

func TestNotebook(t *testing.T) {
	r, err := attend()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stage, printed string
		moved          float64
	}{
		{"Q·Kᵀ", printedProduct, movedProduct},
		{"var(Q)", "0.7053850744157935", movedVariance},
		{"var(K)", "0.867173339673601", movedVariance},
		{"var(Q·Kᵀ)", "5.176241421279855", movedProduct},
		// Printed as normalized.var(), in a cell that calls them scaled.
		{"var(Q·Kᵀ/√d_k)", "0.6470301776599817", movedVariance},
		{"Q·Kᵀ/√d_k + M", printedMasked, movedScaled},
	} {
		golden.Check(t, c.stage, r.scores.Values(c.stage), c.printed, c.moved)
	}
	golden.Check(t, "weights", r.whole.Values("Weights"), printedAttention, movedWeights)

	// Row 0 and six columns of row 1 follow from what is printed of V; for the rest V was made to fit.
	got := r.whole.Values("New V")
	golden.Check(t, "new V, row 0", got[:8],
		"0.08419669 -0.09900277 0.01867325 -0.0277025 -0.07470737 0.00972186 0.05963976 0.09622832", movedNewV)
	golden.Check(t, "new V, row 1", got[8:14],
		"0.44289122 -0.51873434 0.10429746 -0.02703272 0.17400172 -0.04939892", movedNewV)
	golden.Check(t, "new V, where V was made to fit", got[14:], printedRest, movedNewV)
}

// The weights of a row must sum to 1. By rows they do; the notebook's sum to 0.08 to 0.36, and to 1 over all rows.
func TestSums(t *testing.T) {
	r, err := attend()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "sums over the whole matrix", r.whole.Values("Row sums"), "0.0780 0.3135 0.2472 0.3613", 0)
	total := 0.0
	for i, sum := range r.whole.Values("Row sums") {
		total += sum
		if row := r.rows.Values("Row sums")[i]; math.Abs(row-1) > 1e-15 {
			t.Errorf("the softmax of row %d sums to %v", i, row)
		}
		// A wrong row is the right one, shrunk by its sum.
		for j := range dV {
			wrong, right := r.whole.Values("New V")[i*dV+j], r.rows.Values("New V")[i*dV+j]
			if math.Abs(wrong-sum*right) > 1e-14 {
				t.Errorf("new V (%d, %d) is %v over the whole matrix, want %v of %v", i, j, wrong, sum, right)
			}
		}
	}
	if math.Abs(total-1) > 1e-15 {
		t.Errorf("the whole matrix sums to %v", total)
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	if err := run(&b); err != nil {
		t.Fatal(err)
	}
	// The last digit of other tables is sometimes one off, as the inputs are rounded.
	for _, want := range []string{printedQ, printedK, printedAttention} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the output lacks\n%s\nin\n%s", want, &b)
		}
	}
}

// What the notebook prints.
const (
	printedProduct = `[[-1.33923421 -1.95682855 -0.79378427  6.23532513]
 [ 0.78350543  0.47631351  0.56110739  0.12197776]
 [-0.72506282 -0.05318572 -4.31516902  1.78136061]
 [ 1.07380337 -2.27622329 -1.56581858 -2.59277681]]`

	printedMasked = `[[-0.47349079        -inf        -inf        -inf]
 [ 0.277011    0.16840226        -inf        -inf]
 [-0.25634842 -0.01880399 -1.52564264        -inf]
 [ 0.37964682 -0.80476646 -0.55360047 -0.91668503]]`

	printedAttention = `[[0.07803034 0.         0.         0.        ]
 [0.16527315 0.14826346 0.         0.        ]
 [0.09695434 0.12295084 0.02724707 0.        ]
 [0.18313716 0.05602635 0.07202319 0.05009411]]`

	printedRest = `0.24317385  0.39681055
 0.29852493 -0.34882499  0.0530059   0.02716019  0.16791201 -0.09774164  0.18362196  0.27451335
 0.30384966 -0.22216965 -0.09406749  0.03175239 -0.08274747 -0.12484244  0.22354814  0.34666975`
)
