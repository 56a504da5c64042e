package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/linear"
)

// lanes is the number of classes that are fitted side by side. Blocks of classes are fitted in parallel. It is a
// constant, so results don't depend on the number of goroutines.
const lanes = 8

// usualConstant is the constant C that is best for most files: see docs/results.md.
const usualConstant = 0.4

type vec = [lanes]float32

// Classes fits a classifier: labels[i] from 0 to classes-1 is the class of row i. Of three constants C, it
// chooses the one with the largest sum of accuracy and macro F1 on the validation rows. Without validation rows,
// held-out scores decide.
//
// If the rows have more than 2^24 features together, or more than 2^31 divided by classes, it learns from rows
// drawn with the seed. A model has at most 2^24 weights, and
// Classes drops the rarest features beyond them. If train.N times classes is more than 2^26, it returns an error
// that wraps ErrTooLarge; of the validation rows, it uses the first ones then. When ctx ends, it returns ctx's
// error.
func Classes(ctx context.Context, train linear.Rows, labels []int, classes int, validation linear.Rows, validationLabels []int,
	o Options) (m *linear.Model, held *Held, err error) {
	return fitLabels(ctx, train, singly(labels), classes, validation, singly(validationLabels), true, o)
}

// singly returns a list of one label for each label.
func singly(labels []int) [][]int {
	lists := make([][]int, len(labels))
	for i := range labels {
		lists[i] = labels[i : i+1]
	}
	return lists
}

// Labels is like Classes for rows with any number of labels each, also none. Of the constants, it chooses the one with
// the largest average precision of all labels together.
func Labels(ctx context.Context, train linear.Rows, labels [][]int, classes int, validation linear.Rows, validationLabels [][]int,
	o Options) (m *linear.Model, held *Held, err error) {
	return fitLabels(ctx, train, labels, classes, validation, validationLabels, false, o)
}

// fitLabels fits labels. If one is true, each row has one.
func fitLabels(ctx context.Context, train linear.Rows, labels [][]int, classes int, validation linear.Rows, validationLabels [][]int,
	one bool, o Options) (m *linear.Model, held *Held, err error) {
	if err := cmp.Or(checkLabels("training", train.N, labels, classes), checkLabels("validation", validation.N, validationLabels, classes)); err != nil {
		return nil, nil, err
	}
	p, err := newProblem(ctx, train, validation, classes, o)
	if err != nil {
		return nil, nil, err
	}
	if len(p.options.constants) == 0 {
		p.options.constants = []float64{0.2, usualConstant, 1.6}
	}
	f := &classFit{problem: p, classes: classes, blocks: (classes + lanes - 1) / lanes, labels: Pick(labels, p.order), one: one}
	quality := averagePrecision
	if one {
		quality = qualityOf
	}
	f.quality = func(scores []float32, rows []int) float64 {
		if rows == nil {
			return quality(scores, classes, validationLabels)
		}
		return quality(scores, classes, Pick(f.labels, rows))
	}
	weights, err := f.fit(ctx)
	if err != nil {
		return nil, nil, err
	}
	return p.finish(weights, f.held)
}

func checkLabels(name string, rows int, labels [][]int, classes int) error {
	if len(labels) != rows {
		return fmt.Errorf("linear: expected a label for each of the %d %s rows, got %d labels", rows, name, len(labels))
	}
	for i, some := range labels {
		for _, label := range some {
			if label < 0 || label >= classes {
				return fmt.Errorf("linear: expected labels from 0 to %d, got %d for %s row %d", classes-1, label, name, i)
			}
		}
	}
	return nil
}

// Pick returns the values with the given indexes.
func Pick[T any](values []T, indexes []int) []T {
	picked := make([]T, len(indexes))
	for i, index := range indexes {
		picked[i] = values[index]
	}
	return picked
}

// classFit fits classes to the rows of a problem.
type classFit struct {
	*problem
	classes, blocks int
	labels          [][]int // of each row of the matrix
	one             bool    // whether each row has one label
	held            *Held   // with rows of the matrix

	// quality judges the scores of rows of the matrix or, if they are nil, of the first validation rows.
	quality func(scores []float32, rows []int) float64
}

// fit returns the weights, of shape (features, classes), and sets held.
func (f *classFit) fit(ctx context.Context) ([]float32, error) {
	every := f.everyRow()
	states := make([]svm, f.blocks)
	weights := make([]float32, f.features*f.classes)
	best, chosen := -1.0, 0.0
	for _, c := range f.options.constants {
		err := linear.Parallel(ctx, f.blocks, func(block int) {
			s := &states[block]
			if s.w == nil {
				*s = f.newSVM(block)
			}
			f.solve(ctx, s, every, c)
		})
		if err != nil {
			return nil, err
		}
		var quality float64
		var held *Held
		if f.validation.N > 0 {
			quality = f.quality(f.validationScores(states), nil)
		} else {
			if held, err = f.holdOut(ctx, c); err != nil {
				return nil, err
			}
			quality = f.quality(held.Scores, held.Rows)
		}
		// A difference within a standard error of both figures, if one answer in twenty differs, is chance. It doesn't
		// move the choice away from the usual constant.
		margin := 2 * math.Sqrt(0.05/float64(max(1, f.judged())))
		if c > usualConstant {
			margin = -margin
		}
		if quality+margin <= best {
			break // larger constants fit the training rows even more closely
		}
		best, chosen, f.held = quality, c, held
		for i := range states {
			states[i].copyTo(weights, f.classes, f.x)
		}
	}
	if f.held != nil {
		return weights, nil
	}
	states = nil // frees their memory
	var err error
	f.held, err = f.holdOut(ctx, chosen)
	return weights, err
}

// validationScores returns the scores of the validation rows, (rows, classes).
func (f *classFit) validationScores(states []svm) []float32 {
	out := make([]float32, f.validation.N*f.classes)
	linear.ParallelScratch(context.Background(), f.validation.N, func(i int, s *linear.Scratch) {
		index, value := f.vocabulary.Vector(s, f.validation.Text(i))
		vector := f.centred(f.validation.Vector(i, f.x.width))
		for k := range states {
			scores := states[k].of(index, value, vector)
			copy(out[i*f.classes+states[k].first:], scores[:states[k].width])
		}
	})
	return out
}

// judged returns the number of rows that the quality of a constant is measured on.
func (f *classFit) judged() int {
	if f.validation.N > 0 {
		return f.validation.N
	}
	return f.x.rows()
}

// holdOut returns the scores of rows from models that are fitted to the rows of other folds.
func (f *classFit) holdOut(ctx context.Context, c float64) (*Held, error) {
	rows := f.x.rows()
	seen := make([]int, f.classes)
	fold := make([]int, rows)
	for i, labels := range f.labels {
		if fold[i] = i % folds; f.one { // each class is spread over all folds
			label := labels[0]
			fold[i] = (seen[label] + label) % folds
			seen[label]++
		}
	}
	held := make([]float32, rows*f.classes)
	err := linear.Parallel(ctx, f.heldFolds()*f.blocks, func(task int) {
		var inside, outside []int
		for i := range rows {
			if fold[i] == task/f.blocks {
				outside = append(outside, i)
			} else {
				inside = append(inside, i)
			}
		}
		s := f.newSVM(task % f.blocks)
		f.solve(ctx, &s, inside, c)
		s.scores(held, f.classes, f.x, outside)
	})
	return f.heldOf(fold, held), err
}

// svm is the state of one block of classes: weights, and a dual variable for each row of the matrix.
type svm struct {
	first, width int // classes
	w, alpha     []vec
	dense        [lanes][]float32 // weights of the texts' vectors; those in w are 0
}

func (f *classFit) newSVM(block int) svm {
	first := block * lanes
	s := svm{first: first, width: min(lanes, f.classes-first), w: make([]vec, f.features), alpha: make([]vec, f.x.rows())}
	for k := range s.dense {
		s.dense[k] = make([]float32, f.x.width)
	}
	return s
}

// solve minimises, for each class with y = 1 in it and -1 elsewhere, |w|²/2 + C Σ max(0, 1 - y w·x)² over the given
// rows, beginning with the state of s. The rows of the class count as often as its weight says.
func (f *classFit) solve(ctx context.Context, s *svm, rows []int, c float64) {
	const epochs = 60
	tolerance := float32(f.options.tolerance)
	limit := epochs
	if tolerance == 0 {
		tolerance = 0.1
	} else {
		limit = 10000
	}
	diagonal := float32(1 / (2 * c))
	random := rand.New(rand.NewPCG(f.options.Seed, 1))
	order := append([]int(nil), rows...)
	for range limit {
		if ctx.Err() != nil {
			return
		}
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		high, low := float32(0), float32(0)
		for _, i := range order {
			index, value := f.x.row(i)
			vector := f.x.vector(i)
			out := s.of(index, value, vector)
			alpha := &s.alpha[i]
			positive := f.positives(i, s.first)
			var step vec
			changed := false
			for k := range s.width {
				y, d := float32(-1), diagonal
				if positive>>k&1 == 1 {
					y = 1
					if f.options.Weights != nil {
						d /= float32(f.options.Weights[s.first+k])
					}
				}
				old := alpha[k]
				gradient := float32(y*out[k]) - 1 + float32(d*old)
				if old == 0 && gradient >= 0 {
					continue
				}
				high, low = max(high, gradient), min(low, gradient)
				alpha[k] = max(0, old-gradient/(f.squares[i]+d))
				step[k] = y * (alpha[k] - old)
				changed = changed || step[k] != 0
			}
			if changed {
				add(s.w, index, value, &step)
				for k, a := range step {
					if a != 0 && len(vector) > 0 {
						kernel.Axpy(s.dense[k], a, vector)
					}
				}
			}
		}
		if high-low <= tolerance {
			return
		}
	}
}

// positives returns a bit for each class of the block that begins with first: whether the row has the class.
func (f *classFit) positives(row, first int) (bits uint8) {
	for _, label := range f.labels[row] {
		if k := label - first; k >= 0 && k < lanes {
			bits |= 1 << k
		}
	}
	return bits
}

// of returns the scores of a row.
func (s *svm) of(index []uint32, value, vector []float32) vec {
	out := dot(s.w, index, value)
	for k := range s.width {
		if len(vector) > 0 {
			out[k] += kernel.Dot(vector, s.dense[k])
		}
	}
	return out
}

// dot returns the product of the sparse vector of a row with the weights.
func dot(w []vec, index []uint32, value []float32) vec {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	value = value[:len(index)]
	for k, feature := range index {
		p, x := &w[feature], value[k]
		s0 += float32(x * p[0])
		s1 += float32(x * p[1])
		s2 += float32(x * p[2])
		s3 += float32(x * p[3])
		s4 += float32(x * p[4])
		s5 += float32(x * p[5])
		s6 += float32(x * p[6])
		s7 += float32(x * p[7])
	}
	return vec{s0, s1, s2, s3, s4, s5, s6, s7}
}

// add adds the sparse vector of a row times step to the weights.
func add(w []vec, index []uint32, value []float32, step *vec) {
	s0, s1, s2, s3, s4, s5, s6, s7 := step[0], step[1], step[2], step[3], step[4], step[5], step[6], step[7]
	value = value[:len(index)]
	for k, feature := range index {
		p, x := &w[feature], value[k]
		p[0] += float32(x * s0)
		p[1] += float32(x * s1)
		p[2] += float32(x * s2)
		p[3] += float32(x * s3)
		p[4] += float32(x * s4)
		p[5] += float32(x * s5)
		p[6] += float32(x * s6)
		p[7] += float32(x * s7)
	}
}

// scores writes the scores of the given rows of x to the columns of the block in out, of shape (rows of x, classes).
func (s *svm) scores(out []float32, classes int, x *matrix, rows []int) {
	for _, i := range rows {
		index, value := x.row(i)
		scores := s.of(index, value, x.vector(i))
		copy(out[i*classes+s.first:], scores[:s.width])
	}
}

// copyTo writes the weights to the columns of the block in out, of shape (features, classes).
func (s *svm) copyTo(out []float32, classes int, x *matrix) {
	for i := range s.w {
		copy(out[i*classes+s.first:], s.w[i][:s.width])
	}
	for k := range s.width {
		for i, w := range s.dense[k] {
			out[(x.first+i)*classes+s.first+k] = w
		}
	}
}
