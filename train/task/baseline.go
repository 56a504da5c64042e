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
	return linear.Options{Pairs: c.Task.Pairs, Seed: c.Seed}
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
	for i, outputs := 0, m.layout.Classes; i < len(r.Judged); i++ {
		j := &r.Judged[i]
		var err error
		if j.Answer.Text, j.Answer.Number, err = m.network.answer(kind.answered(scores[i*outputs:][:outputs])); err != nil {
			return nil, err
		}
		m.judge(r, j)
	}
	return kind.values(r), nil
}

// scoresOf returns the baseline's scores of sources, (sources, classes). Without a baseline, they are zero.
func (m *Model) scoresOf(sources linear.Rows) []float32 {
	if m.baseline == nil {
		return make([]float32, sources.N*m.layout.Classes)
	}
	return m.baseline.ScoresOf(sources, runtime.GOMAXPROCS(0))
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
	err := error(nil)
	if w != nil {
		content, err = t.firstBaseline(ctx, w, group)
	}
	if content, err = train.Broadcast(group, content, err); err != nil {
		return err
	}
	if w == nil && len(content) > 0 {
		t.baseline, err = t.Config.readBaseline(bytes.NewReader(content), int64(len(content)), true)
		return err
	}
	if t.baseline != nil {
		_, err = io.WriteString(log, baselineText(kindOf(t.Config.Task.Kind).metrics(&t.Config), t.baseline.values))
	}
	return err
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
	if outputs := max(1, len(c.Task.Classes)); b.Outputs() != outputs {
		return nil, fmt.Errorf("it has %d outputs, but the task has %d: restore it", b.Outputs(), outputs)
	}
	return b, json.Unmarshal([]byte(metadata[valuesKey]), &b.values)
}

// scores returns the scores of the training rows and of the validation rows, (rows, outputs), if the Config is Wide.
func (t *Task) scores() (trained, validated []float32) {
	s, ok := t.set.(*rowSet)
	if !ok || !t.Config.Wide || t.baseline == nil {
		return nil, nil
	}
	return t.baseline.held, t.scoresOf(linearRows(s.Validation))
}

// gather returns the scores of some rows, (size, outputs). Missing scores and additional rows are zero.
func gather(scores []float32, rows []int, size, outputs int) []float32 {
	gathered := make([]float32, size*outputs)
	for i, row := range rows {
		if len(scores) > 0 {
			copy(gathered[i*outputs:][:outputs], scores[row*outputs:])
		}
	}
	return gathered
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
	for _, name := range []string{"head.weight", "head.bias"} {
		if p := t.Params.Get(name); p != nil {
			p.Value.Zero()
		}
	}
	score, err := t.Evaluate(ctx)
	if err != nil {
		return err
	}
	s.KeptBaseline, s.Score = true, score
	s.ValLoss, s.ValScore = &s.Score.Loss, &s.Score.Value
	return nil
}
