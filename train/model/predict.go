package model

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

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

// DefaultBeam returns the Beam of PredictOptions without one.
func (m *Model) DefaultBeam() int {
	if m.published == nil || !m.Config.about().decoder {
		return 1
	}
	return m.published.model.Search.Width
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
	if o.Beam == 0 {
		o.Beam = m.DefaultBeam()
	}
	if err := o.check(m); err != nil {
		return nil, err
	}
	if o.Labels != nil {
		return m.infer(ctx, inputs, o)
	}
	if m.Config.Describe().Beam > 1 {
		o.Beam = max(o.Beam, o.Top)
	}
	answers, rows, err := m.read(ctx, inputs, query{mixture: m.Mixture, top: o.choices()}, max(1, o.Beam))
	if err != nil {
		return nil, err
	}
	return answers, m.answer(answers, rows, o)
}

// choices returns the number of choices that answers need.
func (o *PredictOptions) choices() int {
	if o.Threshold != (Threshold{}) {
		return 2
	}
	return o.Top
}

// check returns an error if the model can't use the options.
func (o *PredictOptions) check(m *Model) error {
	d := m.Config.Describe()
	if o.Beam < 0 || o.Beam > MaxBeam {
		return setting.Errorf("%s must be from 1 to %d, or 0 for 1, got %d", setting.Path("beam"), MaxBeam, o.Beam)
	}
	if o.Beam > max(1, d.Beam) {
		return setting.Errorf("%s is for answers written symbol by symbol, not for the task %s", setting.Path("beam"), m.Config.taskName())
	}
	if d.Predict != nil {
		return d.Predict
	}
	if o.Labels != nil {
		if err := o.Labels.check(o, d); err != nil {
			return err
		}
	}
	if o.Top > 0 && d.Top == 0 {
		return setting.Errorf("%s is for answers that the model chooses as a whole, such as labels, not for the task %s", setting.Path("top"), m.Config.taskName())
	}
	if o.NoAnswer && !d.NoAnswer {
		return setting.Errorf("%s is for models that find answers in texts, not for the task %s", setting.Path("no_answer"), m.Config.taskName())
	}
	if o.Top < 0 || o.Top > d.Top {
		return setting.Errorf("%s must be from 1 to %d, or 0 for none, got %d", setting.Path("top"), MaxBeam, o.Top)
	}
	if o.Entities != "" && d.Entities == nil {
		return setting.Errorf("%s is for published models that tag the pieces of a text, not for the task %s", setting.Path("entities"), m.Config.taskName())
	}
	if o.Entities != "" && !slices.Contains(d.Entities, o.Entities) {
		return setting.Errorf("%s must be one of %s, got %.100q%s", setting.Path("entities"), strings.Join(d.Entities, ", "), o.Entities, text.DidYouMean(o.Entities, d.Entities))
	}
	return o.Threshold.check(m.Config)
}

// read asks the network about each input, and the linear model if their answers are mixed. The queries have the fields
// of q. An answer with an Err has no query. Other answers have only what doesn't depend on the model.
func (m *Model) read(ctx context.Context, inputs []string, q query, beam int) (answers []Answer, rows []query, err error) {
	answers = make([]Answer, len(inputs))
	for i, input := range inputs {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		var some []query
		some, answers[i] = m.queries(input)
		for _, row := range some {
			row.place, row.top, row.keep, row.mixture = i, q.top, q.keep || row.keep, q.mixture
			rows = append(rows, row)
		}
	}
	if err := m.compute(ctx, inputs, rows, q, beam); err != nil {
		return nil, nil, err
	}
	return answers, m.together(rows, q.keep), nil
}

// together makes one query of the parts of each input for tags. It sets the choices of the query, unless the outputs
// are kept.
func (m *Model) together(rows []query, keep bool) []query {
	slices.SortFunc(rows, func(a, b query) int { return cmp.Or(a.place-b.place, a.number-b.number) })
	whole := rows[:0]
	for i, q := range rows {
		if q.first > 0 {
			last := &whole[len(whole)-1]
			last.output, last.linear = append(last.output, q.output...), append(last.linear, q.linear...)
			if !keep && (i+1 == len(rows) || rows[i+1].first == 0) {
				last.choices = m.Network.(mixer).mixed(*last, last.mixture)
			}
			continue
		}
		whole = append(whole, q)
	}
	return whole
}

// compute asks the network about queries of inputs, and the linear model if their answers are mixed. The queries have
// the fields of q.
func (m *Model) compute(ctx context.Context, inputs []string, rows []query, q query, beam int) (err error) {
	if q.mixture.Linear > 0 {
		err = m.addLinear(ctx, inputs, rows)
	}
	if err != nil || q.mixture.Linear < 1 {
		return cmp.Or(err, m.choose(ctx, rows, beam))
	}
	for i := range rows {
		if !q.keep {
			rows[i].choices = m.Network.(mixer).mixed(rows[i], q.mixture)
		}
	}
	return nil
}

// addLinear adds the scores of the linear model to the queries of inputs.
func (m *Model) addLinear(ctx context.Context, inputs []string, rows []query) error {
	var places []int // of different inputs; the parts of an input are neighbours
	for _, q := range rows {
		if n := len(places); n == 0 || places[n-1] != q.place {
			places = append(places, q.place)
		}
	}
	scores, err := m.Linear.SourceScores(ctx, &m.Config.Task, linear.Rows{N: len(places), Text: func(i int) string { return inputs[places[i]] }})
	if err != nil {
		return err
	}
	each, k := m.Linear.Outputs(), 0
	for i := range rows {
		if rows[i].place != places[k] {
			k++
		}
		n := len(scores[k]) / each
		if targets := rows[i].targets; targets != nil { // a part of a source has fewer
			n = 0
			for _, t := range targets {
				if t != data.Ignore {
					n++
				}
			}
		}
		first := rows[i].first * each
		rows[i].linear = slices.Clip(scores[k][first:min(first+n*each, len(scores[k]))])
	}
	return nil
}

// A joiner is a network. It completes an input's answer from its queries, after the predictor. There are several, in
// order, if the network reads windows. A Model has the method for networks that don't.
type joiner interface {
	join(rows []query, o PredictOptions, a *Answer) error
}

// answer sets the answers from the choices of their queries.
func (m *Model) answer(answers []Answer, rows []query, o PredictOptions) (err error) {
	for len(rows) > 0 && err == nil {
		n := 1
		for n < len(rows) && rows[n].place == rows[0].place {
			n++
		}
		err, rows = m.Network.(joiner).join(rows[:n], o, &answers[rows[0].place]), rows[n:]
	}
	return err
}

// join completes an answer from one query, with all alternatives among its choices.
func (m *Model) join(rows []query, o PredictOptions, a *Answer) error {
	q := rows[0]
	if o.Threshold != (Threshold{}) {
		likeliest := Answer{Input: a.Input}
		if err := m.Network.answer(q.choices[0], &likeliest); err != nil {
			return err
		}
		o.Threshold.put(q.choices, likeliest.Text)
	}
	seen := map[string]bool{}
	for i, c := range q.choices {
		chosen := Answer{Input: a.Input}
		if i == 0 {
			chosen = *a
		}
		if err := m.Network.answer(c, &chosen); err != nil {
			return err
		}
		if i == 0 {
			*a = chosen
			a.LogProb = c.logProb
		}
		if len(a.Top) == o.Top {
			break
		}
		if !seen[chosen.Text] {
			seen[chosen.Text] = true
			a.Top = append(a.Top, Alternative{chosen.Text, c.logProb, chosen.Part})
		}
	}
	return nil
}
