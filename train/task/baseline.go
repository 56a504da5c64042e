package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/linear/fit"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/runfolder"
)

// A baseline is the linear model that is compared with a task's network, and whose answers are mixed with those of the
// network: a model of the words and the characters of the sources and, if the run began from another model, of that
// model's vectors.
type baseline struct {
	*linear.Model
	values map[string]float64   // on the validation rows, by the names of the kind's metrics
	begun  *Model               // makes the vectors; nil if the Model's Width is 0
	known  map[string][]float32 // scores of validation rows by their sources
	held   float64              // loss on the training rows, by models that haven't seen the row
}

// hasBaseline reports whether the rows of the task have a baseline.
func (c *Config) hasBaseline() bool { return c.fromRows() && kindOf(c.Task.Kind).about().linear != nil }

// needsBase reports whether a model with this configuration needs the one that it began from.
func (c *Config) needsBase() bool {
	return c.partial() || c.From.Dir != "" && c.Mix && c.hasBaseline()
}

// linearRows returns the sources of rows.
func linearRows(p rows.Part) linear.Rows {
	return linear.Rows{N: p.Len(), Text: func(i int) string { return p.Example(i).Source }}
}

// linearTexts returns the texts that the linear model reads: the sources or, if each symbol has an answer, each symbol
// of them with its neighbours. The texts of source i have the numbers from starts[i] to starts[i+1]-1. If begun isn't
// nil, it makes the texts' vectors.
func (c *Config) linearTexts(ctx context.Context, sources linear.Rows, begun *Model) (texts linear.Rows, starts []int, err error) {
	texts, starts = sources, make([]int, sources.N+1)
	if c.Kind().aligned {
		var symbols []string // of all sources
		var owners []int32   // number of the source of each symbol
		for i := range sources.N {
			text := sources.Text(i)
			tokens, _, _ := c.Task.Tagged(text) // sources with an error have no symbols
			for _, t := range tokens {
				symbols, owners = append(symbols, text[t.Start:t.End]), append(owners, int32(i))
			}
			starts[i+1] = len(symbols)
		}
		texts = linear.Rows{N: len(symbols), Text: func(k int) string {
			i := owners[k]
			return linear.Neighbours(symbols[starts[i]:starts[i+1]], k-starts[i])
		}}
	} else {
		for i := range starts {
			starts[i] = i
		}
	}
	if begun != nil {
		texts.Vectors, err = begun.textVectors(ctx, sources, starts)
	}
	return texts, starts, err
}

// fitLinear fits a linear model to the rows. If begun isn't nil, it makes vectors of the sources. If bare is true, the
// model reads only them.
func (t *Task) fitLinear(ctx context.Context, begun *Model, bare bool) (*baseline, error) {
	c, s := &t.Config, t.set.(*rowSet)
	o := fit.Options{Pairs: c.Task.Pairs, Seed: c.Seed, Bare: bare, Weights: t.classWeights}
	if c.Kind().aligned {
		o.Grams = linear.TokenGrams
	}
	if begun != nil {
		o.Width = c.Model.Dim
	}
	kind := kindOf(c.Task.Kind).about().linear
	targetsOf := kind.targets(c)
	var parts [2]linearPart
	var starts []int // of the validation rows
	for i, part := range []rows.Part{s.Train, s.Validation} {
		var err error
		if parts[i].texts, starts, err = c.linearTexts(ctx, linearRows(part), begun); err != nil {
			return nil, err
		}
		for answer := range part.Answers() {
			parts[i].targets = append(parts[i].targets, targetsOf(answer)...)
		}
	}
	m, held, err := kind.fit(ctx, parts[0], parts[1], t.layout.Classes, o)
	if err != nil {
		return nil, err
	}
	b := &baseline{Model: m, begun: begun, known: map[string][]float32{}, held: held.loss(mixture{linear: 1}, t.classWeights)}
	b.remember(s.Validation.Example, b.ScoresOf(parts[1].texts, 0), starts)
	return b, nil
}

// remember keeps the scores of the sources of examples. The texts of source i have the numbers from starts[i].
func (b *baseline) remember(example func(i int) data.Example, scores []float32, starts []int) {
	each := b.Outputs()
	for i := range len(starts) - 1 {
		b.known[example(i).Source] = scores[starts[i]*each : starts[i+1]*each]
	}
}

// fitBaseline fits the baseline, if the task has one.
func (t *Task) fitBaseline(ctx context.Context) error {
	if !t.Config.hasBaseline() || t.baseline != nil {
		return nil
	}
	var begun *Model
	var b *baseline
	var err error
	if t.Config.Mix && t.loadedWhole() {
		begun, err = t.begun()
	}
	if err == nil {
		b, err = t.fitLinear(ctx, begun, false)
	}
	if errors.Is(err, fit.ErrTooLarge) { // then the configuration has no Mix
		return nil
	}
	if err != nil {
		return err
	}
	t.baseline = b
	r, err := t.baselineReport(ctx, t.Examples())
	if r != nil {
		b.values = kindOf(t.Config.Task.Kind).values(r)
	}
	return err
}

// linearScores returns the baseline's scores of each source, (texts, classes) or one number.
func (m *Model) linearScores(ctx context.Context, sources linear.Rows) ([][]float32, error) {
	parts := make([][]float32, sources.N)
	var others []int // the sources whose scores aren't known
	for i := range parts {
		known, ok := m.baseline.known[sources.Text(i)]
		if parts[i] = known; !ok {
			others = append(others, i)
		}
	}
	texts, starts, err := m.Config.linearTexts(ctx, linear.Rows{N: len(others), Text: func(k int) string { return sources.Text(others[k]) }}, m.baseline.begun)
	if err != nil {
		return nil, err
	}
	scores, each := m.baseline.ScoresOf(texts, 0), m.baseline.Outputs()
	for k, i := range others {
		parts[i] = scores[starts[k]*each : starts[k+1]*each]
	}
	return parts, nil
}

// baselineReport compares the answers of the baseline alone with the examples. It returns nil if there is no baseline
// or no example. If the run's summary lists a baseline that is missing, this is an error.
func (m *Model) baselineReport(ctx context.Context, examples []data.Example) (*Report, error) {
	if m.baseline == nil || len(examples) == 0 {
		return nil, m.noBaseline
	}
	return m.judgeAnswers(ctx, examples, PredictOptions{}, mixture{linear: 1})
}

// takeBaseline lets the first process read the folder's baseline, or fit and write it. The other processes don't need
// it, because they don't answer.
func (t *Task) takeBaseline(ctx context.Context, w *runfolder.Writer) error {
	var err error
	t.baseline, err = t.Config.openBaseline(w.Folder)
	if err == nil && t.baseline.Width() > 0 {
		t.baseline.begun, err = t.begun()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = t.fitBaseline(ctx); err == nil && t.baseline != nil {
			values, _ := json.Marshal(t.baseline.values) // finite, so there is no error
			err = w.WriteBaseline(t.Config.id(), t.baseline.Tensors(), map[string]string{valuesKey: string(values)})
		}
	}
	return err
}

// about describes the baseline in words.
func (b *baseline) about() string {
	if b.Width() > 0 {
		return "a linear model of words, characters and the vectors of the model that the run began from"
	}
	return "a linear model of words and characters"
}

// valuesText describes the values of a model, such as "Baseline: a linear model, accuracy 0.7600, macro f1 0.7100".
// Without values, it returns "".
func valuesText(about string, names metrics, values map[string]float64) string {
	var words []string
	for _, m := range names {
		if v, ok := values[m.Name]; ok {
			words = append(words, fmt.Sprintf("%s %.4f", spoken(m.Name), v))
		}
	}
	if words == nil {
		return ""
	}
	return about + ", " + strings.Join(words, ", ") + "\n"
}

// valuesKey is the key in the metadata of a baseline. Its text is the field values as JSON.
const valuesKey = "heed.values"

// openBaseline reads the baseline of a run folder, without the model that makes its vectors. If there is none, the
// error wraps fs.ErrNotExist.
func (c *Config) openBaseline(f runfolder.Folder) (*baseline, error) {
	b := &baseline{}
	file, size, err := f.Open(runfolder.BaselineFile)
	if err == nil {
		defer file.Close()
		tensors, metadata, failed := runfolder.ReadBaseline(file, size, c.id())
		if err = failed; err == nil {
			b.Model, err = linear.FromTensors(tensors)
		}
		if err == nil && b.Width() > 0 && (b.Width() != c.Model.Dim || !c.needsBase()) {
			err = fmt.Errorf("it is for vectors of %d numbers, which this run's model doesn't make", b.Width())
		}
		if err == nil {
			err = json.Unmarshal([]byte(metadata[valuesKey]), &b.values)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.BaselineFile), err)
	}
	return b, nil
}
