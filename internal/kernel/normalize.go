package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// Normalize divides each row of x, of width elements, by its length. A row of zeros stays zero.
func Normalize[F Float](cores int, y, x []F, width int) {
	runRanges(cores, len(x)/width, normRows(width), 4*len(x), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			x, y := x[r*width:][:width], y[r*width:][:width]
			length := max(lengthOf(x), math.SmallestNonzeroFloat64)
			for i, v := range x {
				y[i] = F(float64(v) / length)
			}
		}
	})
}

// NormalizeGrad sets dx to the gradient of Normalize, where g is the gradient of its result: (g − y·Σ(y·g))/length for
// each row. It is zero where x or g is zero for a whole row.
func NormalizeGrad[F Float](cores int, dx, x, g []F, width int) {
	runRanges(cores, len(x)/width, normRows(width), 6*len(x), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			dx, x, g := dx[r*width:][:width], x[r*width:][:width], g[r*width:][:width]
			if portable.AllZero(x) || portable.AllZero(g) {
				clear(dx)
				continue
			}
			length, sum := lengthOf(x), 0.0
			for i, v := range x {
				sum += float64(v) / length * float64(g[i])
			}
			for i, v := range x {
				dx[i] = F((float64(g[i]) - float64(v)/length*sum) / length)
			}
		}
	})
}

// lengthOf returns √Σx². It divides by the largest element, so that no square overflows or vanishes.
func lengthOf[F Float](x []F) float64 {
	largest, sum := 0.0, 0.0
	for _, v := range x {
		largest = max(largest, math.Abs(float64(v)))
	}
	if largest == 0 || math.IsInf(largest, 1) {
		return largest
	}
	for _, v := range x {
		scaled := float64(v) / largest
		sum += scaled * scaled
	}
	return largest * math.Sqrt(sum)
}
