package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// smoothedLoss returns the loss of a row and its gradient, from the definition, in float64.
func smoothedLoss[F Float](logits []F, target int, smoothing float64) (loss float64, grad []float64) {
	largest := math.Inf(-1)
	for _, x := range logits {
		largest = max(largest, float64(x))
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - largest)
	}
	for i, x := range logits {
		q := smoothing / float64(len(logits))
		if i == target {
			q += 1 - smoothing
		}
		below := largest - float64(x)
		loss += q * (math.Log(sum) + below)
		grad = append(grad, math.Exp(-below)/sum-q)
	}
	return loss, grad
}

// TestSmoothCrossEntropy compares the losses and gradients of every body with the definition, for more rows than one
// task handles and for logits far from zero.
func TestSmoothCrossEntropy(t *testing.T) {
	eachBody(t,
		func(t *testing.T) { testSmoothCrossEntropy[float32](t, 2e-6) },
		func(t *testing.T) { testSmoothCrossEntropy[float64](t, 1e-12) })
}

func testSmoothCrossEntropy[F Float](t *testing.T, tol float64) {
	for _, size := range [][2]int{{1, 1}, {3, 2}, {7, 5}, {200, 67}, {3, 9000}} {
		for _, offset := range []F{0, 100, -3000, 1e6} {
			for _, smoothing := range []F{0, 0.125, 1} { // exact in float32
				n, v, tol := size[0], size[1], max(tol, 1e-16*math.Abs(float64(offset))) // a log-sum of 10⁶ is off by 10⁻¹⁰
				logits, targets := normals[F](1, n*v), make([]int, n)
				for i := range logits {
					logits[i] += offset
				}
				want, grad := make([]float64, n), make([]float64, 0, n*v)
				for r := range targets {
					targets[r] = r * 7 % v
					loss, d := smoothedLoss(logits[r*v:][:v], targets[r], float64(smoothing))
					want[r] = loss
					grad = append(grad, d...)
				}
				what := fmt.Sprintf("%d rows of %d, offset %v, smoothing %v", n, v, offset, smoothing)
				losses, logSums, d := make([]F, n), make([]float64, n), make([]F, n*v)
				CrossEntropy(0, losses, logSums, logits, targets, v, smoothing)
				closeTo(t, "losses of "+what, losses, append(want, 1), tol)
				CrossEntropyGrad(0, d, logSums, logits, targets, v, smoothing, slices.Repeat([]F{1}, n))
				closeTo(t, "gradient of "+what, d, append(grad, 1), tol)
			}
		}
	}
}

// TestCrossEntropyLeavesRowsOut puts NaN into rows with ignored targets: they must not be read.
func TestCrossEntropyLeavesRowsOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	logits := []float64{1, 2, 3, nan, inf, -inf, 0.5, 0, -1}
	targets := []int{2, -1, 0}
	for _, smoothing := range []float64{0, 0.1, 1} {
		losses, logSums, d := []float64{nan, nan, nan}, make([]float64, 3), []float64{nan, nan, nan, nan, nan, nan, nan, nan, nan}
		CrossEntropy(0, losses, logSums, logits, targets, 3, smoothing)
		CrossEntropyGrad(0, d, logSums, logits, targets, 3, smoothing, []float64{1, 0, 1})
		first, dFirst := smoothedLoss(logits[:3], 2, smoothing)
		last, dLast := smoothedLoss(logits[6:], 0, smoothing)
		closeTo(t, "losses", losses, []float64{first, 0, last}, 1e-15)
		closeTo(t, "gradient", d, append(append(dFirst, 0, 0, 0), dLast...), 1e-15)
		CrossEntropyGrad(0, d, logSums, logits, []int{0, 1, 2}, 3, smoothing, make([]float64, 3))
		closeTo(t, "gradient with scales of 0", d, make([]float64, 9), 0)
	}
}

// TestCrossEntropyOfMinusInfinity tests logits of −Inf. They don't change the loss unless the target has a share of
// their class.
func TestCrossEntropyOfMinusInfinity(t *testing.T) {
	inf := math.Inf(1)
	logits := []float64{0, -inf, 0, 0, -inf, 0}
	for _, tc := range []struct{ smoothing, first, second float64 }{{0, math.Ln2, inf}, {0.3, inf, inf}, {1, inf, inf}} {
		losses, logSums, d := make([]float64, 2), make([]float64, 2), make([]float64, 6)
		CrossEntropy(0, losses, logSums, logits, []int{0, 1}, 3, tc.smoothing)
		if losses[0] != tc.first || losses[1] != tc.second {
			t.Errorf("smoothing %v: losses %v, want %v and %v", tc.smoothing, losses, tc.first, tc.second)
		}
		CrossEntropyGrad(0, d, logSums, logits, []int{0, 1}, 3, tc.smoothing, []float64{1, 1})
		e := tc.smoothing / 3
		closeTo(t, "gradient", d, []float64{0.5 - e - (1 - tc.smoothing), -e, 0.5 - e, 0.5 - e, -e - (1 - tc.smoothing), 0.5 - e}, 1e-15)
	}
}
