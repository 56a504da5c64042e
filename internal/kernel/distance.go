package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// A Distance is the loss of a single number, or a score: see package portable.
type Distance = portable.Distance

// The distances.
const (
	SquaredError       = portable.SquaredError
	AbsoluteError      = portable.AbsoluteError
	HuberError         = portable.HuberError
	BinaryCrossEntropy = portable.BinaryCrossEntropy
	RightSide          = portable.RightSide
)

// distanceCost is the cost of a Distance per element, where an addition costs 1.
const distanceCost = 8

const distanceStep = grain / distanceCost

// DistanceTasks returns the length that the slice sums of SumDistances must have for n numbers.
func DistanceTasks(n int) int { return parts(n, distanceStep) }

// SumDistances returns the weighted sum of the distances between x and t: weights[p] is the weight of the numbers in
// [p·width, (p+1)·width). Numbers with weight 0 are not read. The argument delta is δ of HuberError. All arithmetic is
// in float64. SumDistances writes partial sums to sums and adds them up in order, so the result doesn't depend on the
// number of cores.
func SumDistances[F Float](cores int, sums []float64, d Distance, delta float64, x, t, weights []F, width int) float64 {
	runLoop[F](cores, distanceLoop[F]{}, distanceCost*len(x), &loopWork[F]{
		n: len(x), step: distanceStep, distance: d, eps: delta, x: x, y: t, z: weights, width: width, logSums: sums,
	})
	var sum float64
	for _, s := range sums {
		sum += s
	}
	return sum
}

// DistanceGrad sets dx to the derivatives of the distances with respect to x, times their scales. scales[p] is the
// scale of the numbers in [p·width, (p+1)·width). If a scale is 0, dx is 0 for its numbers, and x and t are not read.
func DistanceGrad[F Float](cores int, dx []F, d Distance, delta float64, x, t, scales []F, width int) {
	runLoop[F](cores, distanceLoop[F]{}, distanceCost*len(x), &loopWork[F]{
		n: len(x), step: distanceStep, distance: d, eps: delta, out: dx, x: x, y: t, z: scales, width: width,
	})
}

type distanceLoop[F Float] struct{}

func (distanceLoop[F]) run(w *loopWork[F], lo, hi int) {
	var sum float64
	for i := lo; i < hi; {
		p := i / w.width
		end := min(hi, (p+1)*w.width)
		x, t, weight := w.x[i:end], w.y[i:end], float64(w.z[p])
		switch {
		case w.out == nil && weight != 0:
			sum += weight * portable.SumDistances(w.distance, w.eps, x, t)
		case w.out != nil && weight != 0:
			portable.DistanceGrad(w.out[i:end], w.distance, w.eps, x, t, weight)
		case w.out != nil:
			clear(w.out[i:end])
		}
		i = end
	}
	if w.out == nil {
		w.logSums[lo/w.step] = sum
	}
}
