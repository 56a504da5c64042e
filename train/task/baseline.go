package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/linear/beside"
	"github.com/heed-go/heed/internal/linear/fit"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// linearRows returns the sources of rows.
func linearRows(p rows.Part) linear.Rows {
	return linear.Rows{N: p.Len(), Text: func(i int) string { return p.Example(i).Source }}
}

// fitLinear fits a linear model to the rows. If vectors isn't nil, it makes vectors of the sources. If bare is true,
// the model reads only them. It returns also the loss on the training rows, by models that haven't seen the row.
func (t *Task) fitLinear(ctx context.Context, vectors beside.Vectors, bare bool) (*beside.Model, float64, error) {
	c, s := &t.Config, t.set.(*rowSet)
	o := fit.Options{Pairs: c.Task.Pairs, Seed: c.Seed, Bare: bare, Weights: t.classWeights}
	if t.kind.about().symbols {
		o.Grams = linear.TokenGrams
	}
	if vectors != nil {
		o.Width = c.Model.Dim
	}
	kind := t.kind.about().linear
	targetsOf := kind.targets(c)
	var parts [2]linearPart
	var starts [2][]int
	for i, part := range []rows.Part{s.Train, s.Validation} {
		var err error
		if parts[i].texts, starts[i], err = beside.Texts(ctx, &c.Task, linearRows(part), vectors); err != nil {
			return nil, 0, err
		}
		for answer := range part.Answers() {
			parts[i].targets = append(parts[i].targets, targetsOf(answer)...)
		}
	}
	m, out, err := kind.fit(ctx, parts[0], parts[1], t.Coder.Layout().Classes, o)
	if err != nil {
		return nil, 0, err
	}
	held, outputs, each := kind.sides(m.Outputs()), m.Outputs(), len(parts[0].targets)/parts[0].texts.N
	for i, row := range out.Rows {
		held.add(nil, out.Scores[i*outputs:][:outputs], parts[0].targets[row*each:][:each])
	}
	held.correct(m)
	l := &beside.Model{Model: m, Vectors: vectors}
	scores := l.ScoresOf(parts[1].texts)
	if t.kind.about().symbols {
		l.LearnTransitions(parts[0].targets, starts[0], scores, parts[1].targets, starts[1])
	}
	l.Remember(s.Validation.Example, scores, starts[1])
	if judged := held; held.pairs {
		if s.Validation.Len() > 0 { // as for the network
			judged = kind.sides(outputs)
			judged.add(nil, scores, parts[1].targets)
		}
		l.Thresholds = judged.thresholds(logit.Mixture{Linear: 1}, outputs)
	}
	if t.few() && !t.kind.about().symbols {
		l.Held, err = t.heldText(out.Rows, held)
	}
	return l, held.loss(logit.Mixture{Linear: 1}, t.classWeights), err
}

// fewJudged is the number of validation rows below which a linear model is also judged by the training rows, each
// answered by a model that hasn't seen it.
const fewJudged = 200

// few reports whether the validation rows are few.
func (t *Task) few() bool { return len(t.Examples()) < fewJudged }

// heldText says how good the answers of linear models to training rows are that they haven't seen.
func (t *Task) heldText(rows []int, held sides) (string, error) {
	examples := make([]data.Example, len(rows))
	outputs, answers := make([]model.Output, len(rows)), make([]model.Answer, len(rows))
	scores := held.linear
	if held.pairs {
		scores = unpaired(scores)
	}
	each := len(scores) / len(rows)
	for i, row := range rows {
		examples[i] = t.set.(*rowSet).Train.Example(row)
		answers[i].Input = examples[i].Source
		outputs[i] = model.Output{Input: i, Linear: scores[i*each:][:each]}
	}
	if err := t.Mix(answers, outputs, logit.Mixture{Linear: 1}, model.PredictOptions{}); err != nil {
		return "", err
	}
	r := judge.New(t.Model, examples)
	r.Add(t.Model, answers)
	about := fmt.Sprintf("Held out in turn, %s: the linear model", text.Count(len(examples), "training row"))
	return metrics.Text(about, judge.KindOf(&t.Config.Config).Metrics, r.Values()), nil
}

// hasLinear reports whether a linear model can stand beside the network.
func (t *Task) hasLinear() bool { return t.Config.FromRows() && t.kind.about().linear != nil }

// fitBaseline fits the baseline, if the task has one: the linear model that is compared with the network, and whose
// answers are mixed with those of the network.
func (t *Task) fitBaseline(ctx context.Context) error {
	if !t.hasLinear() || t.Linear != nil {
		return nil
	}
	var vectors beside.Vectors
	var l *beside.Model
	var err error
	if t.Config.Mix && t.loadedWhole() {
		vectors, err = t.Features()
	}
	if err == nil {
		l, t.held, err = t.fitLinear(ctx, vectors, false)
	}
	if errors.Is(err, fit.ErrTooLarge) { // then the configuration has no Mix
		return nil
	}
	if err != nil {
		return err
	}
	t.Linear = l
	r, err := judge.Baseline(ctx, t.Model, t.Examples())
	if r != nil {
		l.Values = r.Values()
	}
	return err
}

// loadedWhole reports whether the model began with all the weights of another model that its features need.
func (t *Task) loadedWhole() bool {
	return t.Config.From.Dir != "" && t.unstarted == nil && t.hasLinear() &&
		!slices.ContainsFunc(t.Loaded.Kept, func(name string) bool { return name != "head.weight" && name != "head.bias" })
}

// takeBaseline lets the first process read the folder's baseline, or fit and write it. The other processes don't need
// it, because they don't answer.
func (t *Task) takeBaseline(ctx context.Context, w *runfolder.Writer) error {
	l, err := t.Config.ReadLinear(w.Folder, t.Config.id())
	if err == nil && l.Width() > 0 {
		l.Vectors, err = t.Features()
	}
	if err == nil {
		t.Linear = l
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = t.fitBaseline(ctx)
		if l = t.Linear; err == nil && l != nil {
			err = w.WriteBaseline(t.Config.id(), l.Tensors(), l.Metadata())
		}
	}
	return err
}
