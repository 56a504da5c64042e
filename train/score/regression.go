package score

import (
	"cmp"
	"math"
	"slices"
)

// Regression compares numbers with reference numbers. It keeps all of them in memory. If an answer or a reference is
// NaN, so are all scores.
type Regression struct {
	answers, references []float64
}

// Add adds an answer and its reference.
func (r *Regression) Add(answer, reference float64) {
	r.answers, r.references = append(r.answers, answer), append(r.references, reference)
}

// MeanAbsoluteError returns the mean of |answer − reference|, or NaN without answers.
func (r *Regression) MeanAbsoluteError() float64 {
	sum := 0.0
	for i, x := range r.answers {
		sum += math.Abs(x - r.references[i])
	}
	return sum / float64(len(r.answers))
}

// RSquared returns the coefficient of determination: 1 − Σ(answer − reference)²/Σ(reference − mean of references)². If
// all references are equal, it returns 1 if all answers are right, and otherwise 0, as scikit-learn does. With fewer
// than two answers, it returns NaN.
func (r *Regression) RSquared() float64 {
	if len(r.answers) < 2 {
		return math.NaN()
	}
	residual, variation := 0.0, 0.0
	for i, d := range deviations(r.references) {
		error := r.answers[i] - r.references[i]
		residual += error * error
		variation += d * d
	}
	switch {
	case variation != 0:
		return 1 - residual/variation
	case residual == 0:
		return 1
	default:
		return 0 * residual // NaN if an answer isn't finite
	}
}

// Pearson returns the correlation of answers and references, from −1 to 1. It returns NaN with fewer than two answers,
// if all answers are equal, or if all references are.
func (r *Regression) Pearson() float64 { return correlation(r.answers, r.references) }

// Spearman returns the rank correlation of answers and references, from −1 to 1: the correlation of their ranks, where
// equal numbers have the mean of their ranks. It returns NaN in the same cases as Pearson.
func (r *Regression) Spearman() float64 { return correlation(ranks(r.answers), ranks(r.references)) }

// correlation returns the Pearson correlation of x and y.
func correlation(x, y []float64) float64 {
	var xx, yy, xy float64
	dy := deviations(y)
	for i, dx := range deviations(x) {
		xx += dx * dx
		yy += dy[i] * dy[i]
		xy += dx * dy[i]
	}
	return max(-1, min(1, xy/math.Sqrt(xx)/math.Sqrt(yy))) // rounding may exceed 1
}

// deviations returns the differences of numbers from their mean. If all numbers are equal, the differences are 0.
func deviations(numbers []float64) []float64 {
	d, mean := make([]float64, len(numbers)), 0.0
	for i, x := range numbers {
		d[i] = x - numbers[0] // exactly 0 for equal numbers
		mean += d[i] / float64(len(d))
	}
	for i := range d {
		d[i] -= mean
	}
	return d
}

// ranks returns the rank of each number, from 1. Equal numbers have the mean of their ranks. If a number is NaN, its
// rank is NaN.
func ranks(numbers []float64) []float64 {
	order := make([]int, len(numbers)) // indices, the smallest number first
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(numbers[i], numbers[j]) })
	r := make([]float64, len(numbers))
	for start, end := 0, 0; start < len(order); start = end {
		x := numbers[order[start]]
		for end = start + 1; end < len(order) && numbers[order[end]] == x; end++ {
		}
		rank := float64(start+end+1) / 2
		if math.IsNaN(x) {
			rank = x
		}
		for _, i := range order[start:end] {
			r[i] = rank
		}
	}
	return r
}
