package ops

import (
	"math"
	"math/big"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// An exact sum is a vector of bins. Bin k holds a multiple of 2^(exactLow + 24k), and each term adds less than 2^24
// times that unit to it. So up to 2^29 terms are added without rounding. Terms must be smaller than exactEnd in size.
const (
	exactLow  = -648
	exactBins = 54
	exactEnd  = 0x1p648
)

// SquareSums returns a vector from which Determination computes the coefficient of determination. The vector has dtype
// float64 and no gradient: the number of targets t, Σw(x−t)² over outputs x, and then the exact sums Σw, Σwt and Σwt².
// Inputs and errors are the same as in SumDistance.
func SquareSums(e *Env, outputs, targets, weights *G.Node) (*G.Node, error) {
	return sumVector(e, "r2", kernel.SquaredError, outputs, targets, weights, 2+3*exactBins, func(sums []float64, _ int, x, t, w float64) {
		sums[0]++
		sums[1] += w * (x - t) * (x - t)
		bins := sums[2:]
		addExact(bins[:exactBins], w)
		addProduct(bins[exactBins:2*exactBins], w, t)
		square := t * t
		addProduct(bins[2*exactBins:], w, square)
		addProduct(bins[2*exactBins:], w, math.FMA(t, t, -square))
	})
}

// addProduct adds x·y to an exact sum.
func addProduct(bins []float64, x, y float64) {
	product := x * y
	addExact(bins, product)
	addExact(bins, math.FMA(x, y, -product))
}

// addExact adds x to an exact sum. If x is too large or NaN, the sum becomes NaN.
func addExact(bins []float64, x float64) {
	if !(math.Abs(x) < exactEnd) {
		bins[0] = math.NaN()
		return
	}
	for x != 0 {
		_, exponent := math.Frexp(x)
		if exponent <= exactLow {
			return
		}
		k := (exponent - 1 - exactLow) / 24
		unit := math.Ldexp(1, exactLow+24*k)
		part := math.Trunc(x/unit) * unit
		bins[k] += part
		x -= part
	}
}

// Determination returns the coefficient of determination for sums from SquareSums: 1 − Σw(x−t)²/Σw(t−m)², where m is
// the mean of the targets. If all targets are equal, it is 1 if every output equals its target, and otherwise 0. It is
// NaN for fewer than two targets.
func Determination(sums []float64) float64 {
	var exact [3]big.Float // Σw, Σwt, Σwt²
	for i := range exact {
		total := exact[i].SetPrec(4096)
		for _, x := range sums[2+i*exactBins:][:exactBins] {
			if math.IsNaN(x) {
				return x
			}
			total.Add(total, big.NewFloat(x))
		}
	}
	w, first, second := &exact[0], &exact[1], &exact[2]
	spread := second.Sub(second.Mul(second, w), first.Mul(first, first)) // Σw · Σw(t−m)²
	switch {
	case sums[0] < 2:
		return math.NaN()
	case spread.Sign() != 0:
		variation, _ := spread.Quo(spread, w).Float64()
		return 1 - sums[1]/variation
	case sums[1] == 0:
		return 1
	default:
		return 0 * sums[1] // NaN if an output isn't finite
	}
}
