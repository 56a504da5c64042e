// Package fit fits the models of package linear: a linear classifier or ridge regression.
//
// A linear classifier is a support-vector machine per class, one against the rest, with a squared hinge loss
// (LIBLINEAR's L2-regularised L2-loss SVM), fitted by dual coordinate descent: Hsieh et al., "A Dual Coordinate Descent
// Method for Large-scale Linear SVM", 2008. Ridge regression is fitted by conjugate gradients.
//
// Results have the same bits for the same rows, options and seed, whatever the number of goroutines. Sums of products
// are never fused, so other processors give the same bits too, except where their logarithms differ. With vectors, only
// processors of one kind do.
package fit

import (
	"errors"

	"github.com/heed-go/heed/internal/linear"
)

// Limits on memory and time. Beyond linear.MaxWeights, a fit drops the rarest features. Beyond maxHeld, it returns
// ErrTooLarge. Beyond maxEntries and maxWork, it uses a part of the rows.
const (
	maxHeld    = 1 << 26 // held-out scores
	maxEntries = 1 << 24 // features of all training rows together
	maxWork    = 1 << 31 // the same, times outputs
)

// ErrTooLarge is wrapped by errors about more rows, classes or numbers than this package fits a model for.
var ErrTooLarge = errors.New("too large for a linear model")

// Options of Classes and Numbers.
type Options struct {
	Grams linear.Grams // the zero value means linear.DefaultGrams
	Pairs bool         // a text is two texts with a tab between them
	Width int          // numbers in the vector of a text; 0 for none
	Bare  bool         // the vector alone has the features: there are no n-grams, and a pair has no similarities

	Weights []float64 // for each class, what its rows weigh when it is told from the others; nil means 1

	Seed uint64 // chooses the order of rows, and their folds

	tolerance float64   // of the solver; 0 means a usual one
	constants []float64 // to choose from; none means usual ones
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Bare && o.Width == 0:
		return o, errors.New("linear: expected vectors where there are no n-grams")
	case o.Bare:
		o.Grams, o.Pairs = linear.Grams{}, false
	case o.Grams == (linear.Grams{}):
		o.Grams = linear.DefaultGrams
	}
	if o.Bare {
		return o, nil
	}
	return o, o.Grams.Check()
}

// Feasible reports whether a model with this many outputs can be fitted to this many rows with vectors of this width,
// or would be too large.
func Feasible(rows, width, outputs int) bool {
	return rows <= maxHeld/max(outputs, width) && outputs <= linear.MaxWeights/(1+width+linear.Extras(true))
}

// Held has scores of training rows by models that haven't seen the row.
type Held struct {
	Rows   []int     // of the training rows; all of them or, if there are many, those of one fold
	Scores []float32 // (len(Rows), outputs)
}

// folds is the number of parts of the rows. Each is held out from a model of its own.
const folds = 5

// manyRows is the number of rows from which one fold is held out, and not each in turn: its scores are enough to judge
// by.
const manyRows = 5000

// heldFolds returns the number of folds that are held out.
func (p *problem) heldFolds() int {
	if p.x.rows() >= manyRows {
		return 1
	}
	return folds
}

// heldOf returns the scores of the rows of x whose fold is held out, as scores (rows of x, outputs) has them.
func (p *problem) heldOf(fold []int, scores []float32) *Held {
	h := &Held{}
	for i, f := range fold {
		if f < p.heldFolds() {
			h.Rows = append(h.Rows, i)
			h.Scores = append(h.Scores, scores[i*p.outputs:(i+1)*p.outputs]...)
		}
	}
	return h
}
