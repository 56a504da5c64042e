package fit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/internal/linear"
)

// Numbers fits ridge regression: numbers[i] belongs to row i. Of three penalties, it chooses the one with the
// smallest squared error on the validation rows. Without validation rows, held-out numbers decide.
//
// See Classes for the limits and errors. Numbers must be finite, and at most 1e30.
func Numbers(ctx context.Context, train linear.Rows, numbers []float64, validation linear.Rows, validationNumbers []float64,
	o Options) (m *linear.Model, held *Held, err error) {
	if err := checkNumbers("training", train.N, numbers); err != nil {
		return nil, nil, err
	}
	if err := checkNumbers("validation", validation.N, validationNumbers); err != nil {
		return nil, nil, err
	}
	p, err := newProblem(ctx, train, validation, 1, o)
	if err != nil {
		return nil, nil, err
	}
	if len(p.options.constants) == 0 {
		p.options.constants = []float64{1.5, 3, 6}
	}
	f := &numberFit{problem: p, numbers: Pick(numbers, p.order)}
	weights, held, err := f.fit(ctx, validationNumbers)
	if err != nil {
		return nil, nil, err
	}
	return p.finish(weights, held)
}

func checkNumbers(name string, rows int, numbers []float64) error {
	if len(numbers) != rows {
		return fmt.Errorf("linear: expected a number for each of the %d %s rows, got %d numbers", rows, name, len(numbers))
	}
	for i, x := range numbers {
		if !(math.Abs(x) <= linear.Largest) {
			return fmt.Errorf("linear: expected finite numbers up to %g, got %g for %s row %d", float64(linear.Largest), x, name, i)
		}
	}
	return nil
}

// numberFit fits numbers to the rows of a problem.
type numberFit struct {
	*problem
	numbers []float64 // of the rows of the matrix
}

// fit returns the weights of all features, and the held-out numbers of the matrix's rows.
func (f *numberFit) fit(ctx context.Context, validationNumbers []float64) (weights []float32, held *Held, err error) {
	penalties := f.options.constants
	models := make([][]float32, len(penalties))
	errors := make([]float64, len(penalties))
	every := f.everyRow()
	err = linear.Parallel(ctx, len(penalties), func(i int) {
		models[i] = make([]float32, f.features)
		for k, w := range f.solve(ctx, every, penalties[i]) {
			models[i][k] = float32(w)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	best := 0
	for i, penalty := range penalties {
		if f.validation.N > 0 {
			errors[i] = squaredError(f.validationScores(models[i]), validationNumbers)
		} else {
			out, err := f.holdOut(ctx, penalty)
			if err != nil {
				return nil, nil, err
			}
			if errors[i] = squaredError(out.Scores, Pick(f.numbers, out.Rows)); i == 0 || errors[i] < errors[best] {
				held = out
			}
		}
		if errors[i] < errors[best] {
			best = i
		}
	}
	if held == nil {
		held, err = f.holdOut(ctx, penalties[best])
	}
	return models[best], held, err
}

// validationScores returns the numbers of the validation rows from a model with the given weights for x.
func (f *numberFit) validationScores(weights []float32) []float32 {
	weights = slices.Clone(weights)
	f.uncentre(weights)
	return linear.NewModel(f.vocabulary, 1, weights).ScoresOf(f.validation)
}

// holdOut returns the numbers of rows from models that are fitted to the rows of other folds.
func (f *numberFit) holdOut(ctx context.Context, penalty float64) (*Held, error) {
	held, foldOf := make([]float32, f.x.rows()), make([]int, f.x.rows())
	for i := range foldOf {
		foldOf[i] = i % folds
	}
	err := linear.Parallel(ctx, f.heldFolds(), func(fold int) {
		var inside []int
		for i := range held {
			if i%folds != fold {
				inside = append(inside, i)
			}
		}
		w := f.solve(ctx, inside, penalty)
		for i := fold; i < len(held); i += folds {
			held[i] = float32(product(w, f.x, i))
		}
	})
	return f.heldOf(foldOf, held), err
}

// solve returns the weights w, the intercept last, that minimise Σ (y - w·x)² + penalty |w|² over the given rows,
// where the intercept has no penalty. It uses conjugate gradients for least squares (CGLS), with vectors over rows
// whose mean is 0, so that the intercept doesn't matter.
func (f *numberFit) solve(ctx context.Context, rows []int, penalty float64) []float64 {
	const steps = 100
	limit, tolerance := steps, f.options.tolerance
	if tolerance == 0 {
		tolerance = 1e-3
	} else {
		limit = 10000
	}
	w := make([]float64, f.features)
	if len(rows) == 0 {
		return w
	}
	rest := Pick(f.numbers, rows) // y - w·x
	center(rest)
	gradient := f.transposed(rows, rest, w, penalty)
	direction := append([]float64(nil), gradient...)
	size := norm(gradient)
	end := size * tolerance * tolerance
	change := make([]float64, len(rows))
	for range limit {
		if size <= end || ctx.Err() != nil {
			break
		}
		for i, row := range rows {
			change[i] = product(direction, f.x, row)
		}
		center(change)
		step := size / (norm(change) + float64(penalty*norm(direction)))
		for i, d := range direction {
			w[i] += float64(step * d)
		}
		for i, c := range change {
			rest[i] -= float64(step * c)
		}
		gradient = f.transposed(rows, rest, w, penalty)
		last := size
		size = norm(gradient)
		for i, g := range gradient {
			direction[i] = g + float64(size/last*direction[i])
		}
	}
	w[len(w)-1] = 0
	intercept := 0.0
	for _, row := range rows {
		intercept += (f.numbers[row] - product(w, f.x, row)) / float64(len(rows))
	}
	w[len(w)-1] = intercept
	return w
}

// transposed returns Σ x rest - penalty w.
func (f *numberFit) transposed(rows []int, rest, w []float64, penalty float64) []float64 {
	sum := make([]float64, len(w))
	for i, x := range w {
		sum[i] = -penalty * x
	}
	for i, row := range rows {
		index, value := f.x.row(row)
		for k, feature := range index {
			sum[feature] += float64(float64(value[k]) * rest[i])
		}
		for k, x := range f.x.vector(row) {
			sum[f.x.first+k] += float64(float64(x) * rest[i])
		}
	}
	return sum
}

// product returns the product of w with a row of x.
func product(w []float64, x *matrix, row int) float64 {
	index, value := x.row(row)
	sum := 0.0
	for k, feature := range index {
		sum += float64(w[feature] * float64(value[k]))
	}
	for k, v := range x.vector(row) {
		sum += float64(w[x.first+k] * float64(v))
	}
	return sum
}

// center subtracts the mean.
func center(x []float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for i := range x {
		x[i] -= mean
	}
}

// norm returns the squared norm.
func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v * v)
	}
	return sum
}

// squaredError returns the sum of the squared differences of got from want.
func squaredError(got []float32, want []float64) float64 {
	sum := 0.0
	for i, x := range got {
		d := float64(x) - want[i]
		sum += float64(d * d)
	}
	return sum
}
