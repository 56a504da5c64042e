package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
)

// PredictOptions say how PredictAll answers.
type PredictOptions struct {
	// Beam is how many hypotheses of an answer are followed at a time, as decode.BeamOptions has it. It is for pairs,
	// whose answers are written symbol by symbol: 0 or 1 takes the likeliest symbol each time. It is at most MaxBeam.
	Beam int
}

// An Answer is what a model makes of an input.
type Answer struct {
	Text string

	// LogProb is the natural logarithm of the probability that the model gives the answer: of a sequence, that of all
	// its symbols and its end.
	LogProb float64

	Unknown bool // the input has symbols that training never saw

	Err error // an *InputError if the task doesn't allow the input, which has no answer then
}

// An InputError is an input that a model can't answer, which isn't the model's fault.
type InputError struct {
	Input string
	Err   error
}

func (e *InputError) Error() string { return fmt.Sprintf("%q: %v", e.Input, e.Err) }
func (e *InputError) Unwrap() error { return e.Err }

// Predict answers an input: with the sequence that the model makes of it, the class that it chooses or, of text, the
// character or token that it finds most likely to follow. Bytes of tokens that are no whole character become U+FFFD. An
// input that the task doesn't allow is an *InputError.
func (m *Model) Predict(input string) (string, error) {
	answers, err := m.PredictAll(context.Background(), []string{input}, PredictOptions{})
	if err != nil {
		return "", err
	}
	return answers[0].Text, answers[0].Err
}

// PredictAll answers inputs as Predict does, each by itself, but in batches of similar length, as many side by side as
// Go may use processors. Neither their order nor the number of processors matters to an answer, nor do the other inputs
// but for rounding in its last bits. It holds all inputs' tokens, so that very many are best given in parts.
//
// When ctx is done it returns ctx.Err(), and no answers. If a function that the model was made with panics, PredictAll
// panics in the caller's goroutine, as train.Fit does.
func (m *Model) PredictAll(ctx context.Context, inputs []string, o PredictOptions) ([]Answer, error) {
	if o.Beam < 0 || o.Beam > MaxBeam {
		return nil, setting.Errorf("%s must be from 1 to %d, or 0 for 1, got %d", setting.Path("beam"), MaxBeam, o.Beam)
	}
	if o.Beam > 1 && !m.Config.Kind().Beams {
		return nil, fmt.Errorf("a Beam is for answers that are written symbol by symbol: the task %s is of kind %s", m.Config.Task.Name, m.Config.Task.Kind)
	}
	answers := make([]Answer, len(inputs))
	var rows []query
	source, _ := m.coder.Tokenizers()
	for i, input := range inputs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if source.Unknown() >= 0 { // else it is an error, in what the rule spells of the input
			_, answers[i].Unknown, _ = encoded(source, input)
		}
		b, err := m.encode(input)
		if err != nil {
			answers[i].Err = err
			answers[i].Unknown = answers[i].Unknown || errors.As(err, new(*tokenizer.UnknownSymbolError))
			continue
		}
		rows = append(rows, query{ids: slices.Clone(b.Inputs[:b.Lengths[0]]), place: i})
	}
	if err := m.choose(ctx, rows, max(1, o.Beam)); err != nil {
		return nil, err
	}
	for _, q := range rows {
		text, err := m.coder.Answer(q.targets)
		if err != nil {
			return nil, err
		}
		answers[q.place].Text, answers[q.place].LogProb = text, q.logProb
	}
	return answers, nil
}

// MaxBeam is the most that PredictOptions may have for a Beam.
const MaxBeam = 1 << 10

// batchTokens is about how many tokens a batch has, if it isn't of one row, and freeBatches of how many batches on
// every processor graphs are kept.
const (
	batchTokens = 1 << 11
	freeBatches = 2
)

// A query is an input as a model reads it, and what the model chose for it.
type query struct {
	ids     []int
	place   int // among the inputs
	targets []int
	logProb float64
}

// A batchShape is what a predictor is made for.
type batchShape struct {
	size  int // rows
	width int // of a row of inputs
	beam  int
	cores int // as layers.Build has them
}

// A predictor chooses the targets of a batch of some rows, at most as many as it is made for. It serves one goroutine
// at a time.
type predictor func(ctx context.Context, rows []query) error

// targets returns the targets that the model chooses for a batch of one row.
func (m *Model) targets(b data.Batch) ([]int, error) {
	rows := []query{{ids: b.Inputs[:b.Lengths[0]]}}
	err := m.choose(context.Background(), rows, 1)
	return rows[0].targets, err
}

// choose chooses the targets of rows, which it brings in an order of its own.
func (m *Model) choose(ctx context.Context, rows []query, beam int) error {
	// The order is by nothing but the ids, lest that of the inputs decides what is in a batch.
	slices.SortFunc(rows, func(a, b query) int {
		return cmp.Or(cmp.Compare(len(b.ids), len(a.ids)), slices.Compare(a.ids, b.ids))
	})
	var batches [][]query
	var shapes []batchShape
	for len(rows) > 0 {
		s := m.shapeOf(rows, beam)
		n := min(s.size, len(rows))
		batches, shapes, rows = append(batches, rows[:n]), append(shapes, s), rows[n:]
	}
	workers := min(runtime.GOMAXPROCS(0), len(batches))
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() error {
		for within.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(batches) {
				return nil
			}
			if workers > 1 {
				shapes[i].cores = 1
			}
			if err := m.predict(within, shapes[i], batches[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			if err := apart.Call(work); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	failed := context.Cause(within) // the first error
	apart.Repanic(failed)
	return cmp.Or(ctx.Err(), failed)
}

// shapeOf returns the shape of a batch of the first of rows, the longest of which comes first. There are few different
// shapes, as a predictor is made for each.
func (m *Model) shapeOf(rows []query, beam int) batchShape {
	width := 8
	for width < len(rows[0].ids) {
		width *= 2
	}
	if width/4*3 >= len(rows[0].ids) {
		width = width / 4 * 3
	}
	s := batchShape{width: min(width, m.layout.Len), beam: beam, size: 1}
	most := batchTokens / (beam * max(s.width, m.layout.TargetLen))
	for s.size < min(len(rows), most) {
		s.size *= 2
	}
	return s
}

// predict chooses the targets of rows by a predictor of a shape, which is made if none is free.
func (m *Model) predict(ctx context.Context, s batchShape, rows []query) (err error) {
	predict := m.free.take(s)
	if predict == nil {
		if predict, err = m.newPredictor(s); err != nil {
			return err
		}
	}
	if err := predict(ctx, rows); err != nil {
		return err
	}
	m.free.leave(freePredictor{s, predict, s.size * s.beam * max(s.width, m.layout.TargetLen)})
	return nil
}

// A freeList keeps the predictors that are in no use, those used last at the end. So that memory is bounded however
// many shapes there are, it forgets those used longest ago once there are more tokens in the rest than batches on all
// processors have.
type freeList struct {
	mu     sync.Mutex
	free   []freePredictor
	tokens int
}

type freePredictor struct {
	shape batchShape
	predictor
	tokens int // about what its memory grows with
}

// take takes out a predictor of a shape, or returns nil.
func (l *freeList) take(s batchShape) predictor {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range slices.Backward(l.free) {
		if p.shape == s {
			l.free = slices.Delete(l.free, i, i+1)
			l.tokens -= p.tokens
			return p.predictor
		}
	}
	return nil
}

func (l *freeList) leave(p freePredictor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, p)
	l.tokens += p.tokens
	forget := 0
	for ; l.tokens > freeBatches*runtime.GOMAXPROCS(0)*batchTokens && forget < len(l.free)-1; forget++ {
		l.tokens -= l.free[forget].tokens
	}
	l.free = slices.Delete(l.free, 0, forget)
}

// chooser chooses the likeliest classes: of text, of what follows the last position, or else of every valid one.
func (m *Model) chooser(s batchShape) (predictor, error) {
	l := m.layout
	l.Len = s.width
	logits, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (in, out G.Nodes, err error) {
		b.Cores = s.cores
		nodes, logits, err := m.build(b, g, s.size, l)
		return nodes, G.Nodes{logits}, err
	})
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, rows []query) error {
		sources := make([][]int, s.size)
		for i := range sources { // those that there are too few rows for are any
			sources[i] = rows[min(i, len(rows)-1)].ids
		}
		b, err := data.Pad(sources, s.width, max(0, m.layout.Pad))
		if err != nil {
			return err
		}
		out, err := logits.Call(m.values(b)...)
		if err != nil {
			return err
		}
		values, classes := out[0].Float32s(), m.layout.Classes
		each := len(values) / classes / s.size // positions of a row
		for i := range rows {
			from, to := 0, min(each, len(rows[i].ids))
			if m.Config.Kind().causal {
				from = to - 1
			}
			for p := from; p < to; p++ {
				class, logProb := likeliest(values[(i*each+p)*classes:][:classes])
				rows[i].targets = append(rows[i].targets, class)
				rows[i].logProb += logProb
			}
		}
		return nil
	}, nil
}

// likeliest returns the class of the highest logit, the first of several, and the logarithm of its probability.
func likeliest(logits []float32) (class int, logProb float64) {
	for i, x := range logits {
		if x > logits[class] {
			class = i
		}
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - logits[class]))
	}
	return class, -math.Log(sum)
}
