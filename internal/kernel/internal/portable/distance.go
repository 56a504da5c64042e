package portable

import "math"

// A Distance is the loss of a single number x with target t. RightSide is a score, not a loss, and has no derivative.
type Distance int

const (
	SquaredError       Distance = iota // (x − t)²
	AbsoluteError                      // |x − t|
	HuberError                         // (x − t)²/2 if |x − t| ≤ δ, otherwise δ·(|x − t| − δ/2)
	BinaryCrossEntropy                 // −t·log σ(x) − (1 − t)·log(1 − σ(x))
	RightSide                          // 1 if x > 0 and t > 1/2 are both true or both false, otherwise 0; 0 if x is NaN
)

// SumDistances returns the sum of the distances between x and t. The argument delta is δ of HuberError.
func SumDistances[F Float](d Distance, delta float64, x, t []F) float64 {
	t = t[:len(x)]
	var sum float64
	switch d {
	case SquaredError:
		for i := range x {
			by := float64(x[i]) - float64(t[i])
			sum += by * by
		}
	case AbsoluteError:
		for i := range x {
			sum += math.Abs(float64(x[i]) - float64(t[i]))
		}
	case HuberError:
		for i := range x {
			by := math.Abs(float64(x[i]) - float64(t[i]))
			if by <= delta {
				sum += by * by / 2
			} else {
				sum += delta * (by - delta/2)
			}
		}
	case BinaryCrossEntropy:
		for i := range x {
			sum += binaryCrossEntropy(float64(x[i]), float64(t[i]))
		}
	case RightSide:
		for i := range x {
			if x[i] == x[i] && (x[i] > 0) == (t[i] > 0.5) {
				sum++
			}
		}
	}
	return sum
}

// binaryCrossEntropy adds up nonnegative terms, so that no digits cancel. The loss is 0 if x is +Inf and t is 1, or if
// x is −Inf and t is 0.
func binaryCrossEntropy(x, t float64) float64 {
	loss := math.Log1p(math.Exp(-math.Abs(x)))
	switch {
	case x < 0 && t > 0:
		loss -= t * x
	case x > 0 && t < 1:
		loss += (1 - t) * x
	}
	return loss
}

// DistanceGrad sets dx to the derivatives of the distances with respect to x, times scale.
func DistanceGrad[F Float](dx []F, d Distance, delta float64, x, t []F, scale float64) {
	x, t = x[:len(dx)], t[:len(dx)]
	switch d {
	case SquaredError:
		for i := range dx {
			dx[i] = F(2 * scale * (float64(x[i]) - float64(t[i])))
		}
	case AbsoluteError:
		for i := range dx {
			by := float64(x[i]) - float64(t[i])
			switch {
			case by > 0:
				by = 1
			case by < 0:
				by = -1
			}
			dx[i] = F(scale * by)
		}
	case HuberError:
		for i := range dx {
			by := float64(x[i]) - float64(t[i])
			dx[i] = F(scale * max(-delta, min(by, delta)))
		}
	case BinaryCrossEntropy:
		for i := range dx {
			dx[i] = F(scale * binaryCrossEntropyGrad(float64(x[i]), float64(t[i])))
		}
	}
}

// binaryCrossEntropyGrad returns σ(x) − t. If t is 0 or 1, no digits cancel.
func binaryCrossEntropyGrad(x, t float64) float64 {
	e := math.Exp(-math.Abs(x))
	if x < 0 {
		return e/(1+e) - t
	}
	return (1 - t) - e/(1+e)
}
