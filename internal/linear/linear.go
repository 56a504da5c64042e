// Package linear fits the simple models with which every result on rows of text is compared: a linear classifier and
// ridge regression on the words and characters of a text, and for tagging a classifier of a token with its neighbours.
//
// Features are TF-IDF values of n-grams. A linear classifier is a support-vector machine per class, one against the
// rest, with a squared hinge loss (LIBLINEAR's L2-regularised L2-loss SVM), fitted by dual coordinate descent:
// Hsieh et al., "A Dual Coordinate Descent Method for Large-scale Linear SVM", 2008. Ridge regression is fitted by
// conjugate gradients.
//
// Results have the same bits for the same rows, options and seed, whatever the number of goroutines. Sums of products
// are never fused, so other processors give the same bits too, except where their logarithms differ.
package linear

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Limits on memory and time. Beyond maxWeights, a fit drops the rarest features. Beyond maxHeld, it returns
// ErrTooLarge. Beyond maxEntries and maxWork, it uses a part of the rows.
const (
	maxWeights = 1 << 24 // of a model
	maxHeld    = 1 << 26 // held-out scores
	maxEntries = 1 << 24 // features of all training rows together
	maxWork    = 1 << 31 // the same, times outputs
	largest    = 1e30    // weight or number, so that no score overflows
)

// ErrTooLarge is wrapped by errors about more rows, classes or numbers than this package fits a model for.
var ErrTooLarge = errors.New("too large for a linear model")

// Rows are N texts. Text returns text i; any number of goroutines may call it at once.
type Rows struct {
	N    int
	Text func(i int) string
}

// Texts makes Rows of a slice.
func Texts(texts []string) Rows {
	return Rows{len(texts), func(i int) string { return texts[i] }}
}

// Options of FitClasses and FitNumbers.
type Options struct {
	Grams Grams // the zero value means DefaultGrams
	Pairs bool  // a text is two texts with a tab between them

	Seed  uint64 // chooses the order of rows, and their folds
	Cores int    // goroutines; 0 means GOMAXPROCS
	Folds int    // models for the held-out scores, each fitted without its part of the rows; 0 means 5

	tolerance float64   // of the solver; 0 means a usual one
	constants []float64 // to choose from; none means usual ones
}

func (o Options) withDefaults() (Options, error) {
	if o.Grams == (Grams{}) {
		o.Grams = DefaultGrams
	}
	if o.Folds == 0 {
		o.Folds = 5
	}
	if o.Folds < 2 {
		return o, fmt.Errorf("linear: expected at least 2 folds, got %d", o.Folds)
	}
	return o, o.Grams.check()
}

// A Model gives scores to texts: a score for each class, or a number. It doesn't change, so any number of goroutines
// may use it at once.
type Model struct {
	vocabulary
	outputs int
	weights []float32 // (features, outputs)
}

// Fits reports whether a model with this many outputs can be fitted to this many rows, or would be too large.
func Fits(rows, outputs int) bool {
	return rows <= maxHeld/outputs && outputs <= maxWeights/(1+extras(true))
}

// Scale multiplies all scores of the model by a factor, and then adds a number to them.
func (m *Model) Scale(by, plus float32) {
	for i := range m.weights {
		m.weights[i] *= by
	}
	intercepts := m.weights[len(m.weights)-m.outputs:]
	for i := range intercepts {
		intercepts[i] += plus
	}
}

// Outputs returns the number of classes, or 1 for numbers.
func (m *Model) Outputs() int { return m.outputs }

// Scores computes the scores of a text: for classes, a distance from the class's hyperplane, positive if the text
// belongs to it. The length of out must be Outputs.
func (m *Model) Scores(out []float32, text string) {
	var s scratch
	m.scores(out, &s, text)
}

func (m *Model) scores(out []float32, s *scratch, text string) {
	out = out[:m.outputs]
	clear(out)
	index, value := m.vector(s, text)
	for k, feature := range index {
		row := m.weights[int(feature)*m.outputs:][:len(out)]
		for i, w := range row {
			out[i] += float32(w * value[k])
		}
	}
}

// ScoresOf returns the scores of many texts, of shape (rows.N, Outputs), computed by up to cores goroutines. 0 cores
// mean GOMAXPROCS.
func (m *Model) ScoresOf(rows Rows, cores int) []float32 {
	out := make([]float32, rows.N*m.outputs)
	const chunk = 64
	parallel(context.Background(), cores, (rows.N+chunk-1)/chunk, func(c int) {
		var s scratch
		for i := c * chunk; i < min(rows.N, (c+1)*chunk); i++ {
			m.scores(out[i*m.outputs:(i+1)*m.outputs], &s, rows.Text(i))
		}
	})
	return out
}

// parallel calls do for 0 to n-1, on up to cores goroutines. It returns when all calls have returned. If ctx ends
// first, it skips the remaining calls and returns ctx's error.
func parallel(ctx context.Context, cores, n int, do func(i int)) error {
	if cores < 1 {
		cores = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			do(i)
		}
	}
	var group sync.WaitGroup
	for range min(cores, n) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return ctx.Err()
}
