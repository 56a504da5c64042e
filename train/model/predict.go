package model

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// PredictOptions are the options of PredictAll.
type PredictOptions struct {
	// Beam is the width of the beam search for seq2seq: see decode.BeamOptions. It is at most MaxBeam. 0 or 1 means
	// greedy search, which takes the likeliest symbol each time. For other kinds, it must be 0 or 1.
	Beam int

	// Top is the number of likeliest answers in Answer.Top: classes, next symbols of a text, or sequences. For seq2seq,
	// tagging and masked text, it is at most MaxBeam. For seq2seq, the beam is at least Top wide, so Top may change the
	// answer. For other kinds, it doesn't. The probabilities of all classes add up to 1.
	Top int

	// Threshold chooses between two labels. The answer then comes first in Answer.Top, even if it is less likely.
	Threshold Threshold
}

// Predict returns the model's answer to an input: a number, or the likeliest sequence, label or tags; for text, the
// likeliest next character or token; for masked text, the input with the likeliest symbols in place of its masks. Bytes
// of tokens that aren't part of a whole character become U+FFFD. If the task doesn't allow the input, the error is an
// *InputError.
func (m *Model) Predict(input string) (string, error) {
	answers, err := m.PredictAll(context.Background(), []string{input}, PredictOptions{})
	if err != nil {
		return "", err
	}
	return answers[0].Text, answers[0].Err
}

// PredictAll answers each input as Predict does. It puts inputs of similar length into batches, and runs up to
// GOMAXPROCS batches at once. An answer depends neither on the order of the inputs nor on GOMAXPROCS. Other inputs may
// change its LogProb by rounding. PredictAll keeps the tokens of all inputs in memory, so for very many inputs, call it
// several times.
//
// PredictAll checks the options even if there are no inputs. Its error is a *ConfigError if the model can't use them.
//
// When ctx is done, PredictAll returns ctx.Err() and no answers. If a function of the rule or of a tokenizer panics,
// PredictAll panics on the caller's goroutine, like train.Fit.
func (m *Model) PredictAll(ctx context.Context, inputs []string, o PredictOptions) ([]Answer, error) {
	return m.PredictMixed(ctx, inputs, o, m.mixture)
}

// PredictMixed is PredictAll with another mixture than the model has.
func (m *Model) PredictMixed(ctx context.Context, inputs []string, o PredictOptions, x Mixture) ([]Answer, error) {
	if o.Beam < 0 || o.Beam > MaxBeam {
		return nil, setting.Errorf("%s must be from 1 to %d, or 0 for 1, got %d", setting.Path("beam"), MaxBeam, o.Beam)
	}
	if o.Beam > 1 && !m.Config.Kind().Beams {
		return nil, setting.Errorf("%s is for answers written symbol by symbol, not for the task %s", setting.Path("beam"), m.Config.Task.Name)
	}
	if o.Top < 0 || o.Top > MaxBeam && (m.Config.Kind().AnswerUnits || m.Config.Kind().Masks) {
		return nil, setting.Errorf("%s must be from 1 to %d, or 0 for none, got %d", setting.Path("top"), MaxBeam, o.Top)
	}
	if m.Config.Kind().Embeds {
		return nil, fmt.Errorf("the model %s has no answers: it makes vectors of texts, with Model.Embed or heed embed", m.Config.Task.Name)
	}
	if o.Top > 0 && m.Config.Kind().Numbers {
		return nil, setting.Errorf("%s is for answers that the model chooses: the task %s answers with one number", setting.Path("top"), m.Config.Task.Name)
	}
	if err := o.Threshold.check(&m.Config); err != nil {
		return nil, err
	}
	if m.Config.Kind().Beams {
		o.Beam = max(o.Beam, o.Top)
	}
	wanted := o.Top
	if o.Threshold != (Threshold{}) {
		wanted = 2
	}
	answers, rows, err := m.read(ctx, inputs, query{mixture: x, top: wanted}, max(1, o.Beam))
	if err != nil {
		return nil, err
	}
	return answers, m.answer(answers, rows, o)
}

// read asks the network about each input, and the linear model if their answers are mixed. The queries have the fields
// of q. An answer with an Err has no query. Other answers have only what doesn't depend on the model.
func (m *Model) read(ctx context.Context, inputs []string, q query, beam int) (answers []Answer, rows []query, err error) {
	answers = make([]Answer, len(inputs))
	for i, input := range inputs {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		var b data.Batch
		if b, answers[i] = m.encode(input); answers[i].Err == nil {
			row := m.query(b)
			row.place, row.top, row.keep, row.mixture = i, q.top, q.keep, q.mixture
			rows = append(rows, row)
		}
	}
	if q.mixture.Linear > 0 {
		err = m.addLinear(ctx, inputs, rows)
	}
	if err != nil || q.mixture.Linear < 1 {
		return answers, rows, cmp.Or(err, m.choose(ctx, rows, beam))
	}
	for i := range rows {
		if !q.keep {
			rows[i].choices = m.network.(mixer).mixed(rows[i], q.mixture)
		}
	}
	return answers, rows, nil
}

// addLinear adds the scores of the linear model to the queries of inputs.
func (m *Model) addLinear(ctx context.Context, inputs []string, rows []query) error {
	scores, err := m.linearScores(ctx, linear.Rows{N: len(rows), Text: func(i int) string { return inputs[rows[i].place] }})
	if err != nil {
		return err
	}
	each := m.linear.Outputs()
	for i := range rows {
		n := len(scores[i]) / each
		if targets := rows[i].targets; targets != nil { // a source that is too long has fewer
			n = 0
			for _, t := range targets {
				if t != data.Ignore {
					n++
				}
			}
		}
		rows[i].linear = scores[i][:min(n*each, len(scores[i]))]
	}
	return nil
}

// answer sets the answers from the choices of their queries.
func (m *Model) answer(answers []Answer, rows []query, o PredictOptions) error {
	for _, q := range rows {
		a, seen := &answers[q.place], map[string]bool{}
		if o.Threshold != (Threshold{}) {
			label, _, err := m.network.answer(q.choices[0])
			if err != nil {
				return err
			}
			o.Threshold.put(q.choices, label)
		}
		for i, c := range q.choices {
			text, number, err := m.network.answer(c)
			if err != nil {
				return err
			}
			if i == 0 {
				a.Text, a.Number, a.LogProb, a.Spans = text, number, c.logProb, m.network.spans(a.Input, c)
			}
			if len(a.Top) == o.Top {
				break
			}
			if !seen[text] {
				seen[text] = true
				a.Top = append(a.Top, Alternative{text, c.logProb})
			}
		}
	}
	return nil
}

// Cuts reports whether the model answers an input, but ignores a part of it, because the input is longer than the
// model's context of MaxLen symbols. If an answer is one label or number, it ignores the end or, with Config.CutsStart,
// the beginning: of the input or, for pairs, of the longer text.
func (m *Model) Cuts(input string) bool {
	_, a := m.encode(input)
	return a.Cut
}

// MaxBeam is the greatest Beam of PredictOptions.
const MaxBeam = 1 << 10

// query returns the query of a batch of one row.
func (m *Model) query(b data.Batch) query {
	n := b.Lengths[0]
	q := query{ids: slices.Clone(b.Inputs[:n])}
	if m.Config.Kind().Aligned && m.Config.Task.Target != nil {
		q.targets = slices.Clone(b.Targets[:n])
	}
	return q
}

// choose sets the choices of rows. It reorders the rows.
func (m *Model) choose(ctx context.Context, rows []query, beam int) error {
	// Sort by ids only, so that batches don't depend on the order of the inputs.
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
	var mu sync.Mutex
	read, inputs := 0, 0
	for _, batch := range batches {
		inputs += len(batch)
	}
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
			if m.Progress != nil {
				mu.Lock()
				read += len(batches[i])
				m.Progress(read, inputs)
				mu.Unlock()
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

// shapeOf returns the shape of the next batch, which has the first rows. The longest row must be the first. There are
// only a few different shapes, because each needs its own predictor.
func (m *Model) shapeOf(rows []query, beam int) batchShape {
	width := 8
	for width < len(rows[0].ids) {
		width *= 2
	}
	if step := max(4, width/8); len(rows[0].ids) > 8 {
		width = (len(rows[0].ids) + step - 1) / step * step
	}
	s := batchShape{width: min(width, m.layout.Len), beam: beam, size: 1}
	limit := batchTokens / (beam * max(s.width, m.layout.TargetLen))
	for s.size < min(len(rows), limit) {
		s.size *= 2
	}
	return s
}

// predict sets the choices of rows with a free predictor of the given shape, or with a new one.
func (m *Model) predict(ctx context.Context, s batchShape, rows []query) (err error) {
	predict := m.free.take(s)
	if predict == nil {
		if predict, err = m.network.predictor(s); err != nil {
			return err
		}
	}
	if err := predict(ctx, rows); err != nil {
		return err
	}
	m.free.leave(freePredictor{s, predict, s.size * s.beam * max(s.width, m.layout.TargetLen)})
	return nil
}

// CheckFinite returns an error that wraps decode.ErrNotFinite if a number that a model has computed is NaN or infinite.
func CheckFinite[F float32 | float64](values ...F) error {
	for _, x := range values {
		if x-x != 0 {
			return fmt.Errorf("the model's output is %v, which is no answer: %w", x, decode.ErrNotFinite)
		}
	}
	return nil
}

// chooser returns a predictor for a network. The function choose sets the choices of a row from the row's part of the
// output.
func (m *Model) chooser(n network, s batchShape, choose func(output []float32, q *query)) (predictor, error) {
	l := m.layout
	l.Len = s.width
	model, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		b.Cores = s.cores
		inputs = n.Inputs(g, s.size, l)
		output, err := n.Forward(b, inputs)
		return inputs, G.Nodes{output}, err
	})
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, rows []query) error {
		sources := make([][]int, s.size)
		for i := range sources { // unused rows repeat the last one
			sources[i] = rows[min(i, len(rows)-1)].ids
		}
		b, err := data.Pad(sources, s.width, max(0, m.layout.Pad))
		if err != nil {
			return err
		}
		out, err := model.Call(n.Values(b)...)
		if err != nil {
			return err
		}
		values := out[0].Float32s()
		each := len(values) / s.size
		if err := CheckFinite(values[:each*len(rows)]...); err != nil {
			return err
		}
		for i := range rows {
			choose(values[i*each:][:each], &rows[i])
		}
		return nil
	}, nil
}
