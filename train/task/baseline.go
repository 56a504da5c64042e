package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train"
)

// A baseline is the simple model that is compared with a task's model: a linear model of the words and the characters
// of the sources. If the configuration is Wide, the task's model starts from its scores.
type baseline struct {
	*linear.Model
	held   []float32          // (training rows, outputs): scores by models that haven't seen the row; nil from Open
	values map[string]float64 // on the validation rows, by the names of the kind's metrics
}

// hasBaseline reports whether the rows of the task have a baseline.
func (c *Config) hasBaseline() bool { return c.fromRows() && kindOf(c.Task.Kind).about().linear }

// FitBaseline fits the simple model that the task's model is compared with, and from which it starts if the
// configuration is Wide. If the task has none, FitBaseline does nothing. Train fits the baseline itself. Call
// FitBaseline before you pass the task's Problem to another function.
func (t *Task) FitBaseline(ctx context.Context) error {
	s, ok := t.set.(*rowSet)
	if !ok || !t.Config.hasBaseline() || t.baseline != nil {
		return nil
	}
	fitted, held, err := kindOf(t.Config.Task.Kind).fitLinear(ctx, &t.Config, s)
	if errors.Is(err, linear.ErrTooLarge) { // then the configuration isn't Wide
		return nil
	}
	if err != nil {
		return err
	}
	t.baseline = &baseline{Model: fitted, held: held}
	t.baseline.values, err = t.baselineValues(s.Validation.Examples())
	return err
}

// linearRows returns the sources of rows.
func linearRows(p rows.Part) linear.Rows {
	return linear.Rows{N: p.Len(), Text: func(i int) string { return p.Example(i).Source }}
}

func (c *Config) linearOptions() linear.Options {
	o := linear.Options{Pairs: c.Task.Pairs, Seed: c.Seed}
	if c.Kind().aligned {
		o.Grams = linear.TokenGrams
	}
	return o
}

// linearTexts returns the texts that the linear model reads: the sources or, if each symbol has an answer, each symbol
// of them with its neighbours. The texts of source i have the numbers from starts[i] to starts[i+1]-1.
func (c *Config) linearTexts(coder data.Coder, sources linear.Rows) (texts linear.Rows, starts []int) {
	starts = make([]int, sources.N+1)
	if !c.Kind().aligned {
		for i := range starts {
			starts[i] = i
		}
		return sources, starts
	}
	source, _ := coder.Tokenizers()
	var symbols []string // of all sources
	var owners []int32   // number of the source of each symbol
	for i := range sources.N {
		text := sources.Text(i)
		tokens, _ := source.Tokenize(text, tokenizer.Options{}) // sources with an error have no symbols
		for _, t := range tokens {
			symbols, owners = append(symbols, text[t.Start:t.End]), append(owners, int32(i))
		}
		starts[i+1] = len(symbols)
	}
	return linear.Rows{N: len(symbols), Text: func(k int) string {
		i := owners[k]
		return linear.Neighbours(symbols[starts[i]:starts[i+1]], k-starts[i])
	}}, starts
}

// fitClasses fits a linear classifier to the classes of all texts of linearTexts. It scales the scores so that their
// softmax has the least cross-entropy on the training rows, by models that haven't seen the row.
func (s *rowSet) fitClasses(ctx context.Context, c *Config, trained, validated []int) (*linear.Model, []float32, error) {
	train, _ := c.linearTexts(s.coder, linearRows(s.Train))
	validation, _ := c.linearTexts(s.coder, linearRows(s.Validation))
	classes := s.coder.Layout().Classes
	m, held, err := linear.FitClasses(ctx, train, trained, classes, validation, validated, c.linearOptions())
	if err != nil {
		return nil, nil, err
	}
	scale := bestScale(held, trained, classes)
	m.Scale(scale)
	for i := range held {
		held[i] *= scale
	}
	return m, held, nil
}

// baselineValues returns the values of the baseline on examples, by the names of the kind's metrics. They are nil if
// there is no baseline.
func (m *Model) baselineValues(examples []data.Example) (map[string]float64, error) {
	if m.baseline == nil || len(examples) == 0 {
		return nil, nil
	}
	kind := kindOf(m.Config.Task.Kind)
	r := &Report{kind: kind}
	r.gather(examples)
	scores := m.scoresOf(linear.Rows{N: len(r.Judged), Text: func(i int) string { return r.Judged[i].Source }})
	for i := range r.Judged {
		j := &r.Judged[i]
		var err error
		if j.Answer.Text, j.Answer.Number, err = m.network.answer(kind.answered(scores.of(i), m.layout.Classes)); err != nil {
			return nil, err
		}
		m.judge(r, j)
	}
	return kind.values(r), nil
}

// rowScores are the scores of a baseline for the texts of linearTexts, (texts, classes). The texts of source i have the
// numbers from starts[i] to starts[i+1]-1.
type rowScores struct {
	values  []float32
	starts  []int
	classes int
}

// of returns the scores of source i, (texts, classes).
func (s rowScores) of(i int) []float32 {
	return s.values[s.starts[i]*s.classes : s.starts[i+1]*s.classes]
}

// scoresOf returns the baseline's scores of sources. Without a baseline, they are zero.
func (m *Model) scoresOf(sources linear.Rows) rowScores {
	texts, starts := m.Config.linearTexts(m.coder, sources)
	s := rowScores{starts: starts, classes: m.layout.Classes}
	if m.baseline == nil {
		s.values = make([]float32, texts.N*s.classes)
	} else {
		s.values = m.baseline.ScoresOf(texts, runtime.GOMAXPROCS(0))
	}
	return s
}

// baselineText describes the values of a baseline, such as "Baseline: a linear model of words and characters, accuracy
// 0.7600, macro f1 0.7100". Without values, it returns "".
func baselineText(names metrics, values map[string]float64) string {
	var words []string
	for _, m := range names {
		if v, ok := values[m.Name]; ok {
			words = append(words, fmt.Sprintf("%s %.4f", spoken(m.Name), v))
		}
	}
	if words == nil {
		return ""
	}
	return "Baseline: a linear model of words and characters, " + strings.Join(words, ", ") + "\n"
}

// takeBaseline lets the first process read the folder's baseline, or fit and write it. The other processes get a copy.
func (t *Task) takeBaseline(ctx context.Context, w *runfolder.Writer, group train.Group, log io.Writer) error {
	if !t.Config.hasBaseline() {
		return nil
	}
	var content []byte
	var err error
	if w != nil {
		content, err = t.firstBaseline(ctx, w, group)
	}
	if content, err = train.Broadcast(group, content, err); err != nil {
		return err
	}
	if w == nil && len(content) > 0 {
		if t.baseline, err = t.Config.readBaseline(bytes.NewReader(content), int64(len(content)), true); err != nil {
			err = fmt.Errorf("process %d of the Group and process 0 have different settings or data: the baseline of process 0: %w", group.Rank(), err)
		}
	}
	if _, err := train.Broadcast(group, nil, err); err != nil {
		return err
	}
	if t.baseline != nil {
		io.WriteString(log, baselineText(kindOf(t.Config.Task.Kind).metrics(&t.Config), t.baseline.values))
	}
	return nil
}

// firstBaseline sets the task's baseline in the first process, and returns the content of its file for the others.
func (t *Task) firstBaseline(ctx context.Context, w *runfolder.Writer, group train.Group) (content []byte, err error) {
	t.baseline, err = t.Config.openBaseline(w.Folder, true)
	if errors.Is(err, fs.ErrNotExist) {
		if err = t.FitBaseline(ctx); err == nil && t.baseline != nil {
			err = w.WriteBaseline(t.Config.id(), t.baseline.tensors(), t.baseline.metadata())
		}
	}
	if err == nil && group != nil && t.baseline != nil {
		content, err = w.Read(runfolder.BaselineFile, math.MaxInt64)
	}
	return content, err
}

// heldTensor is the name of the tensor with the field held of a baseline. The others are those of the linear model.
const heldTensor = "held"

// valuesKey is the key in the metadata of a baseline. Its text is the field values as JSON.
const valuesKey = "heed.values"

func (b *baseline) tensors() []safetensors.Tensor {
	held := safetensors.Tensor{Name: heldTensor, Shape: []int{len(b.held) / b.Outputs(), b.Outputs()}, Data: b.held}
	return append(b.Tensors(), held)
}

func (b *baseline) metadata() map[string]string {
	values, _ := json.Marshal(b.values) // finite, so there is no error
	return map[string]string{valuesKey: string(values)}
}

// openBaseline reads the baseline of a run folder. If there is none, the error wraps fs.ErrNotExist. Only training
// needs the scores of the training rows.
func (c *Config) openBaseline(f runfolder.Folder, forTraining bool) (*baseline, error) {
	var b *baseline
	file, size, err := f.Open(runfolder.BaselineFile)
	if err == nil {
		defer file.Close()
		b, err = c.readBaseline(file, size, forTraining)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.BaselineFile), err)
	}
	return b, nil
}

func (c *Config) readBaseline(r io.Reader, size int64, forTraining bool) (*baseline, error) {
	tensors, metadata, err := runfolder.ReadBaseline(r, size, c.id(), func(name string) bool { return name != heldTensor || forTraining })
	if err != nil {
		return nil, err
	}
	b := &baseline{}
	var own []safetensors.Tensor
	for _, t := range tensors {
		if held, ok := t.Data.([]float32); ok && t.Name == heldTensor {
			b.held = held
		} else {
			own = append(own, t)
		}
	}
	if b.Model, err = linear.FromTensors(own); err != nil {
		return nil, err
	}
	return b, json.Unmarshal([]byte(metadata[valuesKey]), &b.values)
}

// scores returns the scores of the training rows and of the validation rows, if the Config is Wide.
func (t *Task) scores() (trained, validated rowScores) {
	s, ok := t.set.(*rowSet)
	if !ok || !t.Config.Wide {
		return trained, validated
	}
	validated = t.scoresOf(linearRows(s.Validation))
	if t.baseline == nil {
		return t.scoresOf(linearRows(s.Train)), validated
	}
	_, starts := t.Config.linearTexts(t.coder, linearRows(s.Train))
	return rowScores{t.baseline.held, starts, t.layout.Classes}, validated
}

// gather returns the scores of some rows, (size, width). The rest of a row is zero, and so are additional rows.
func (s rowScores) gather(rows []int, size, width int) []float32 {
	gathered := make([]float32, size*width)
	for i, row := range rows {
		copy(gathered[i*width:][:width], s.of(row))
	}
	return gathered
}

// clearHead makes the layers of the model compute 0.
func (m *Model) clearHead() {
	for _, name := range []string{"head.weight", "head.bias"} {
		if p := m.Params.Get(name); p != nil {
			p.Value.Zero()
		}
	}
}

// keepBaseline makes the model of a finished training answer as its baseline, if no check was better, and writes this
// to the summary. Few checks are better by chance alone: the score of a check must be better by more than one standard
// error of the difference between two models that answer one row in twenty differently.
func (t *Task) keepBaseline(ctx context.Context, s *Summary) error {
	if !t.Config.Wide || t.baseline == nil || s.Unfinished || !s.Best.Validated || t.Config.Training.Stopping.KeepLast {
		return nil
	}
	k := t.Config.Kind()
	name := strings.TrimPrefix(t.Config.Training.Stopping.Monitor, "val_")
	if _, ok := t.baseline.values[name]; !ok {
		name = k.Score
	}
	better := s.Best.Metrics["val_"+name] - t.baseline.values[name]
	if metric, _ := kindOf(k.Name).metrics(&t.Config).Get(name); metric.lower {
		better = -better
	}
	margin := 0.0
	if k.Classes {
		margin = math.Sqrt(0.05 / float64(t.set.judged()))
	}
	if better > margin {
		return nil
	}
	t.clearHead()
	score, err := t.Evaluate(ctx)
	if err != nil {
		return err
	}
	s.KeptBaseline, s.Score = true, score
	s.ValLoss, s.ValScore = &s.Score.Loss, &s.Score.Value
	return nil
}
