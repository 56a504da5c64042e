package fit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/heed-go/heed/internal/linear"
)

// A problem is what the fits of classes and of numbers share: vectors of the rows.
type problem struct {
	options    Options
	vocabulary *linear.Vocabulary
	features   int
	outputs    int

	train      linear.Rows
	order      []int // of the training rows: row i of x is row order[i]; there may be others, which aren't used
	x          *matrix
	validation linear.Rows
	squares    []float32 // the squared norm of each row of x

	// The vector of a row of x is a text's vector, less the mean, times the factor: see centre.
	mean   []float64
	factor float64
}

// vectorNorm is the root mean square of the norms that the vectors of texts get. On Debian's sections with the vectors
// of MiniLM, 1 to 1.5 are equally good, and 2 is worse.
const vectorNorm = 1.25

func newProblem(ctx context.Context, train, validation linear.Rows, outputs int, o Options) (*problem, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if train.N == 0 || outputs < 1 {
		return nil, fmt.Errorf("linear: expected at least one training row and one output, got %d and %d", train.N, outputs)
	}
	if widest := max(outputs, o.Width); train.N > maxHeld/widest {
		return nil, fmt.Errorf("linear: %w: expected rows times outputs and times the width of vectors up to %d, got %d times %d", ErrTooLarge, maxHeld, train.N, widest)
	}
	for _, r := range []linear.Rows{train, validation} {
		if len(r.Vectors) != r.N*o.Width {
			return nil, fmt.Errorf("linear: expected vectors of shape (%d, %d), got %d numbers", r.N, o.Width, len(r.Vectors))
		}
	}
	validation.N = min(validation.N, maxHeld/outputs)
	p := &problem{options: o, train: train, validation: validation, outputs: outputs}
	order := rand.New(rand.NewPCG(o.Seed, 0)).Perm(train.N)
	v, used, entries, err := newVocabulary(ctx, train, order, outputs, o)
	if err != nil {
		return nil, err
	}
	p.vocabulary, p.features = v, v.Features()
	p.order = order[:used]
	if p.x, err = newMatrix(ctx, v, train, p.order, o.Width, entries); err != nil {
		return nil, err
	}
	p.centre()
	p.squares = make([]float32, used)
	for i := range p.squares {
		_, value := p.x.row(i)
		for _, part := range [][]float32{value, p.x.vector(i)} {
			for _, x := range part {
				p.squares[i] += float32(x * x)
			}
		}
	}
	return p, nil
}

// centre gives the vectors of the texts in x the mean 0 and the norm vectorNorm, so that one penalty suits them and
// the n-grams.
func (p *problem) centre() {
	width, n := p.options.Width, float64(len(p.order))
	p.mean, p.factor = make([]float64, width), 1
	if width == 0 {
		return
	}
	for _, row := range p.order {
		for k, x := range p.train.Vector(row, width) {
			p.mean[k] += float64(x) / n
		}
	}
	squares := 0.0
	for _, row := range p.order {
		for k, x := range p.train.Vector(row, width) {
			d := float64(x) - p.mean[k]
			squares += float64(d * d)
		}
	}
	if squares > 0 {
		p.factor = vectorNorm / math.Sqrt(squares/n)
	}
	p.x.dense = make([]float32, 0, len(p.order)*width)
	for _, row := range p.order {
		p.x.dense = append(p.x.dense, p.centred(p.train.Vector(row, width))...)
	}
}

// centred returns the vector that x has for a text's vector.
func (p *problem) centred(vector []float32) []float32 {
	centred := make([]float32, len(vector))
	for k, x := range vector {
		centred[k] = float32(float64(x)-p.mean[k]) * float32(p.factor)
	}
	return centred
}

// uncentre makes weights for the vectors of texts of weights for the vectors of x, in place.
func (p *problem) uncentre(weights []float32) {
	intercepts := weights[len(weights)-p.outputs:]
	for k, mean := range p.mean {
		row := weights[(p.x.first+k)*p.outputs:][:p.outputs]
		for i := range row {
			w := float64(row[i]) * p.factor
			row[i] = float32(w)
			intercepts[i] -= float32(w * mean)
		}
	}
}

// everyRow returns the numbers of all rows of x.
func (p *problem) everyRow() []int {
	rows := make([]int, p.x.rows())
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// finish returns the model with the given weights for x, of shape (features, outputs), and the held-out scores with
// numbers of training rows in place of those of x.
func (p *problem) finish(weights []float32, held *Held) (*linear.Model, *Held, error) {
	p.uncentre(weights)
	for i, row := range held.Rows {
		held.Rows[i] = p.order[row]
	}
	return linear.NewModel(p.vocabulary, p.outputs, weights), held, nil
}
