// Package linear fits the simple models with which every result on rows of text is compared: a linear classifier and
// ridge regression on the words and characters of a text, and for tagging a classifier of a token with its neighbours.
// A text may also have a vector, such as that of a published model.
//
// Features are TF-IDF values of n-grams, and the numbers of the vector. A linear classifier is a support-vector machine
// per class, one against the rest, with a squared hinge loss (LIBLINEAR's L2-regularised L2-loss SVM), fitted by dual
// coordinate descent: Hsieh et al., "A Dual Coordinate Descent Method for Large-scale Linear SVM", 2008. Ridge
// regression is fitted by conjugate gradients.
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
	widest     = 1 << 16 // vector of a text
)

// ErrTooLarge is wrapped by errors about more rows, classes or numbers than this package fits a model for.
var ErrTooLarge = errors.New("too large for a linear model")

// Rows are N texts. Text returns text i; any number of goroutines may call it at once. Vectors, of shape (N,
// Options.Width), has the vector of each text.
type Rows struct {
	N       int
	Text    func(i int) string
	Vectors []float32
}

// vector returns the vector of row i, which has this width.
func (r Rows) vector(i, width int) []float32 { return r.Vectors[i*width:][:width] }

// Texts makes Rows of a slice.
func Texts(texts []string) Rows {
	return Rows{N: len(texts), Text: func(i int) string { return texts[i] }}
}

// Options of FitClasses and FitNumbers.
type Options struct {
	Grams Grams // the zero value means DefaultGrams
	Pairs bool  // a text is two texts with a tab between them
	Width int   // numbers in the vector of a text; 0 for none
	Bare  bool  // the vector alone has the features: there are no n-grams, and a pair has no similarities

	Weights []float64 // for each class, what its rows weigh when it is told from the others; nil means 1

	Seed  uint64 // chooses the order of rows, and their folds
	Cores int    // goroutines; 0 means GOMAXPROCS
	Folds int    // models for the held-out scores, each fitted without its part of the rows; 0 means 5

	tolerance float64   // of the solver; 0 means a usual one
	constants []float64 // to choose from; none means usual ones
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Bare && o.Width == 0:
		return o, errors.New("linear: expected vectors where there are no n-grams")
	case o.Bare:
		o.Grams, o.Pairs = Grams{}, false
	case o.Grams == (Grams{}):
		o.Grams = DefaultGrams
	}
	if o.Folds == 0 {
		o.Folds = 5
	}
	if o.Folds < 2 {
		return o, fmt.Errorf("linear: expected at least 2 folds, got %d", o.Folds)
	}
	if o.Bare {
		return o, nil
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

// Fits reports whether a model with this many outputs can be fitted to this many rows with vectors of this width, or
// would be too large.
func Fits(rows, width, outputs int) bool {
	return rows <= maxHeld/max(outputs, width) && outputs <= maxWeights/(1+width+extras(true))
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

// Width returns how many numbers the vector of a text has.
func (m *Model) Width() int { return m.width }

// Layer returns what the model computes of a vector alone: weights of shape (Width, Outputs), and a bias (Outputs).
func (m *Model) Layer() (weights, bias []float32) {
	end := len(m.weights) - m.outputs
	return m.weights[end-m.width*m.outputs : end], m.weights[end:]
}

// Scores computes the scores of a text: for classes, a distance from the class's hyperplane, positive if the text
// belongs to it. The length of out must be Outputs, and that of the vector Width.
func (m *Model) Scores(out []float32, text string, vector []float32) {
	var s scratch
	m.scores(out, &s, text, vector)
}

func (m *Model) scores(out []float32, s *scratch, text string, vector []float32) {
	out = out[:m.outputs]
	clear(out)
	index, value := m.vector(s, text)
	add := func(feature int, x float32) {
		row := m.weights[feature*m.outputs:][:len(out)]
		for i, w := range row {
			out[i] += float32(w * x)
		}
	}
	for k, feature := range index {
		add(int(feature), value[k])
	}
	for k, x := range vector {
		add(m.sparse()-1+k, x)
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
			m.scores(out[i*m.outputs:(i+1)*m.outputs], &s, rows.Text(i), rows.vector(i, m.width))
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
