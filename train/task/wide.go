package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
)

// FitBaseline fits the simple model that the task's model is compared with, and from which it starts if the
// configuration is Wide. If the task has none, FitBaseline does nothing. Train fits the baseline itself. Call
// FitBaseline before you pass the task's Problem to another function.
func (t *Task) FitBaseline(ctx context.Context) error {
	s, ok := t.set.(*rowSet)
	if !ok || !t.Config.hasBaseline() || t.baseline != nil {
		return nil
	}
	fitted, held, err := kindOf(t.Config.Task.Kind).fitLinear(ctx, &t.Config, t.coder, s.Set)
	if errors.Is(err, linear.ErrTooLarge) { // then the configuration isn't Wide
		return nil
	}
	if err != nil {
		return err
	}
	t.baseline = &baseline{Model: fitted, held: held}
	r, err := t.baselineReport(s.Validation.Examples())
	if r != nil {
		t.baseline.values = kindOf(t.Config.Task.Kind).values(r)
	}
	return err
}

// baselineReport compares the answers of the baseline with the examples. It returns nil if there is no baseline or no
// example. If the run's summary lists a baseline that is missing, this is an error.
func (m *Model) baselineReport(examples []data.Example) (*Report, error) {
	if m.baseline == nil || len(examples) == 0 {
		return nil, m.noBaseline
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
	return r, nil
}

// scoresOf returns the baseline's scores of sources. Without a baseline, they are zero.
func (m *Model) scoresOf(sources linear.Rows) rowScores {
	texts, starts := m.Config.linearTexts(sources)
	s := rowScores{starts: starts, classes: m.layout.Classes}
	if m.baseline == nil {
		s.values = make([]float32, texts.N*s.classes)
	} else {
		s.values = m.baseline.ScoresOf(texts, 0)
	}
	return s
}

// scoresIn returns the scores in a batch of one row, without those of its padding. They are nil unless the Config is
// Wide.
func (m *Model) scoresIn(b data.Batch) []float32 {
	if !m.Config.Wide {
		return nil
	}
	return b.Scores[:m.scoresShape(1, b.Lengths[0]).TotalSize()]
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

// trainScores returns the scores of the training rows, if the Config is Wide.
func (t *Task) trainScores() rowScores {
	sources := linearRows(t.set.(*rowSet).Train)
	if t.baseline == nil {
		return t.scoresOf(sources)
	}
	_, starts := t.Config.linearTexts(sources)
	return rowScores{t.baseline.held, starts, t.layout.Classes}
}

// validationScores returns the scores of the validation rows, if the Config is Wide.
func (t *Task) validationScores() rowScores {
	return t.scoresOf(linearRows(t.set.(*rowSet).Validation))
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
	names := []string{strings.TrimPrefix(t.Config.Training.Stopping.Monitor, "val_"), k.Score, "mean_absolute_error"} // one row has no r2
	i := slices.IndexFunc(names, func(name string) bool {
		_, ok := t.baseline.values[name]
		return ok
	})
	if i < 0 {
		return nil
	}
	name := names[i]
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
	s.KeptBaseline = true
	s.validation(score)
	return nil
}

// BesideBaseline compares the score of a finished training with that of the baseline, in a line of text. It says
// whether the validation rows are too few to tell them apart and, if the model isn't better, what to try. Without a
// baseline or without validation, it returns "".
func (t *Task) BesideBaseline(s *Summary) string {
	baseline, ok := s.Baseline[s.ScoreName]
	if !ok || s.ValScore == nil {
		return ""
	}
	name, score := spoken(s.ScoreName), *s.ValScore
	if s.KeptBaseline {
		return fmt.Sprintf("No check was better than the baseline, with %s %.4f, by more than chance, so the model answers as the baseline does%s\n", name, baseline, t.advice(s, score))
	}
	line := fmt.Sprintf("The baseline has %s %.4f, so the model ", name, baseline)
	better := score - baseline
	switch {
	case better > 0:
		line += fmt.Sprintf("is better by %.4f", better)
	case better == 0:
		line += "is as good"
	default:
		line += fmt.Sprintf("is worse by %.4f", -better)
	}
	if s.Chance != nil && *s.Chance > leastChance && better != 0 {
		line += fmt.Sprintf(", but %s are too few to tell them apart", text.Count(len(t.Examples()), "row"))
	}
	if better <= 0 || s.Guesses {
		line += t.advice(s, score)
	}
	return line + "\n"
}

// advice says what would help a model that isn't better than its baseline or than guesses.
func (t *Task) advice(s *Summary, score float64) string {
	switch {
	case score == 1:
		return ""
	case s.Guesses && t.Config.From.Dir == "":
		return ": it is hardly better than guesses; to compare texts, begin with a published model (--from)"
	case score == s.Baseline[s.ScoreName] && !s.KeptBaseline:
		return ""
	case t.Config.hasBaseline() && !t.Config.Wide:
		return ": more rows help most; --wide starts from the baseline"
	}
	return ": more rows help most"
}
