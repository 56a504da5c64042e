package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// A problem is what the fits of classes and of numbers share: vectors of the rows.
type problem struct {
	options    Options
	vocabulary *vocabulary
	features   int
	outputs    int

	train         Rows
	order, unused []int // of the training rows: row i of x is row order[i]; the others aren't used
	x             *matrix
	validation    Rows
	squares       []float32 // the squared norm of each row of x
}

func newProblem(ctx context.Context, train, validation Rows, outputs int, o Options) (*problem, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if train.N == 0 || outputs < 1 {
		return nil, fmt.Errorf("linear: expected at least one training row and one output, got %d and %d", train.N, outputs)
	}
	if train.N > maxHeld/outputs {
		return nil, fmt.Errorf("linear: %w: expected rows times outputs up to %d, got %d times %d", ErrTooLarge, maxHeld, train.N, outputs)
	}
	validation.N = min(validation.N, maxHeld/outputs)
	p := &problem{options: o, train: train, validation: validation, outputs: outputs}
	order := rand.New(rand.NewPCG(o.Seed, 0)).Perm(train.N)
	v, used, entries, err := newVocabulary(ctx, train, order, outputs, o)
	if err != nil {
		return nil, err
	}
	p.vocabulary, p.features = v, v.features()
	p.order, p.unused = order[:used], order[used:]
	if p.x, err = v.matrix(ctx, train, p.order, entries, o.Cores); err != nil {
		return nil, err
	}
	p.squares = make([]float32, used)
	for i := range p.squares {
		_, value := p.x.row(i)
		for _, x := range value {
			p.squares[i] += float32(x * x)
		}
	}
	return p, nil
}

// everyRow returns the numbers of all rows of x.
func (p *problem) everyRow() []int {
	rows := make([]int, p.x.rows())
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// validationScores returns the scores of the validation rows from a model with the given weights.
func (p *problem) validationScores(weights []float32) []float32 {
	m := &Model{vocabulary: *p.vocabulary, outputs: p.outputs, weights: weights}
	return m.ScoresOf(p.validation, p.options.Cores)
}

// finish returns the model with the given weights, of shape (features, outputs), and the held-out scores in the
// order of the training rows; held has them in the order of x. Rows that aren't used get the model's scores.
func (p *problem) finish(ctx context.Context, weights, held []float32) (*Model, []float32, error) {
	m := &Model{vocabulary: *p.vocabulary, outputs: p.outputs, weights: weights}
	out := make([]float32, p.train.N*p.outputs)
	for i, row := range p.order {
		copy(out[row*p.outputs:(row+1)*p.outputs], held[i*p.outputs:])
	}
	err := parallelScratch(ctx, p.options.Cores, len(p.unused), func(i int, s *scratch) {
		row := p.unused[i]
		m.scores(out[row*p.outputs:(row+1)*p.outputs], s, p.train.Text(row))
	})
	if err != nil {
		return nil, nil, err
	}
	return m, out, nil
}
