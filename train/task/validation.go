package task

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// mixes reports whether the network and the linear model answer together.
func (t *Task) mixes() bool {
	return t.Config.Mix && t.Linear != nil && t.set.judged() > 0
}

// judgeValidation lets the trained model answer the validation rows. It chooses the mixture of its answers, or the
// temperature of a network alone, and sets the fields of the summary that depend on single answers. Only the first
// process of a group does that, except for vectors.
func (t *Task) judgeValidation(ctx context.Context, s *Summary, first bool) error {
	t.Mixture, t.Thresholds = t.usualMixture(), nil
	k, c := t.kind.about(), &t.Config
	if !c.FromRows() || !s.Best.Validated || !first && !k.together {
		return nil
	}
	var r *judge.Report
	var err error
	switch {
	case t.mixes(), k.linear != nil && c.Task.Classes != nil:
		v, failed := t.readValidation(ctx)
		if failed != nil {
			return failed
		}
		t.chooseMixture(v)
		var score judge.Score
		if r, score, err = t.judgeMixed(v); !t.mixes() {
			score.Loss = s.Score.Loss
		}
		if t.mixes() || t.Thresholds != nil { // otherwise the check has the score
			s.of(t.Model, score)
		}
		if err == nil {
			var baseline *judge.Report
			baseline, err = judge.Baseline(ctx, t.Model, t.Examples())
			r.Beside(t.Model, baseline)
		}
	case k.together || k.linear != nil:
		if r, err = judge.Answers(ctx, t.Model, t.Examples(), model.PredictOptions{}); err != nil {
			return err
		}
		if s.Score.Judged(r); k.together {
			s.Baseline = r.Baseline
		}
		s.of(t.Model, s.Score)
	}
	if r == nil || err != nil {
		return err
	}
	s.Chance, s.Guesses = r.Chance, (k.together || c.Task.Pairs) && t.guesses(r, s.Score)
	if t.mixes() {
		x := t.Mixture
		s.Linear, s.Answers = &x.Linear, r.Values()
	}
	return nil
}

// usualMixture returns the mixture without validation rows.
func (t *Task) usualMixture() logit.Mixture {
	switch {
	case !t.Config.Mix || t.Linear == nil:
		return logit.Mixture{}
	case t.Config.Solved():
		return logit.Mixture{Linear: 1}
	}
	return logit.Mixture{Linear: t.Config.usualLinear()}
}

// A validation has the validation rows as the model reads them.
type validation struct {
	report  *judge.Report // without answers
	answers []model.Answer
	outputs []model.Output
	sides   sides // of the rows with a known reference
}

// mostSides limits the numbers in sides.
const mostSides = 1 << 18

// readValidation reads the validation rows.
func (t *Task) readValidation(ctx context.Context) (*validation, error) {
	v := &validation{report: judge.New(t.Model, t.Examples())}
	var err error
	var both logit.Mixture
	switch {
	case t.mixes() && t.Config.Solved(): // the network doesn't answer
		both.Linear = 1
	case t.mixes():
		both.Linear = 0.5
	}
	if v.answers, v.outputs, err = t.Outputs(ctx, judge.Sources(v.report.Judged), both); err != nil {
		return nil, err
	}
	k := t.kind.about()
	targetsOf := k.linear.targets(&t.Config)
	v.sides = k.linear.sides(t.Coder.Layout().Classes)
	for _, o := range v.outputs {
		reference := v.report.Judged[o.Input].References[0]
		if len(v.sides.network)+len(v.sides.linear) > 2*mostSides || !t.knows(reference) {
			continue
		}
		targets := targetsOf(reference)
		if n := max(len(o.Network), len(o.Linear)) / v.sides.width; k.symbols && n < len(targets) { // the source was cut
			targets = targets[:n]
		}
		v.sides.add(o.Network, o.Linear, targets)
	}
	return v, nil
}

// knows reports whether the model can give an answer.
func (t *Task) knows(answer string) bool {
	switch {
	case t.Config.Task.Classes != nil:
		return !slices.ContainsFunc(t.Config.Task.Labels(answer), func(label string) bool { return !slices.Contains(t.Config.Task.Classes, label) })
	case t.Config.Task.Target != nil:
		ids, err := t.Config.Task.Target.Encode(answer)
		return err == nil && !slices.Contains(ids, t.Config.Task.Target.Unknown())
	}
	return true
}

// chooseMixture chooses the mixture with which the model answers the validation rows best. A network alone gets a
// temperature (Guo et al., "On Calibration of Modern Neural Networks", 2017): training goes on after the validation
// loss is lowest, when another value is monitored, and weights are chosen by few rows, so probabilities are too high.
// Labels that don't exclude each other get thresholds.
func (t *Task) chooseMixture(v *validation) {
	s := &v.sides
	switch known := len(s.classes)+len(s.numbers) > 0; {
	case t.Config.Solved() && t.mixes():
		x := logit.Mixture{Linear: 1}
		if known && s.numbers == nil {
			x.Temperature = temperatureOf(s.linear, s.classes, s.width, leastTemperature)
		}
		t.Mixture = x
	case known && t.mixes():
		t.Mixture = s.mix(t.Config.usualLinear())
	case known:
		t.Mixture = logit.Mixture{Temperature: temperatureOf(s.network, s.classes, s.width, 1)}
	}
	if s.pairs {
		t.Thresholds = s.thresholds(t.Mixture, t.Coder.Layout().Classes)
	}
}

// judgeMixed returns the report and the score of the validation rows, answered with the model's mixture.
func (t *Task) judgeMixed(v *validation) (*judge.Report, judge.Score, error) {
	loss := v.sides.loss(t.Mixture, t.classWeights)
	if err := t.Mix(v.answers, v.outputs, t.Mixture, model.PredictOptions{}); err != nil {
		return nil, judge.Score{}, err
	}
	v.report.Add(t.Model, v.answers)
	score := t.score(loss, v.values(t))
	score.Judged(v.report)
	return v.report, score, nil
}

// values returns the validation metrics of the answers, as a check has them.
func (v *validation) values(t *Task) map[string]float64 {
	values := map[string]float64{}
	for _, some := range []map[string]float64{v.report.Values(), v.ofLabel(&t.Config, t.Mixture)} {
		for name, value := range some {
			values["val_"+name] = value
		}
	}
	return values
}

// ofLabel returns the monitored metric, if it is one of a single label: see classMetrics.
func (v *validation) ofLabel(c *Config, x logit.Mixture) map[string]float64 {
	name := strings.TrimPrefix(c.Training.Stopping.Monitor, "val_")
	metric, label, ok := metrics.OfClass(name)
	if !ok {
		return nil
	}
	if metric == "average_precision" {
		class := slices.Index(c.Task.Classes, label)
		return map[string]float64{name: v.sides.averagePrecision(x, class)}
	}
	for _, s := range v.report.Classes.Classes() {
		if s.Class == label {
			return map[string]float64{name: map[string]float64{"precision": s.Precision, "recall": s.Recall, "f1": s.F1}[metric]}
		}
	}
	return map[string]float64{name: 0}
}

// averagePrecision returns the average precision of a class, or 0 if no row has it.
func (s *sides) averagePrecision(x logit.Mixture, class int) float64 {
	logits := x.Logits(slices.Clone(s.network), s.linear, s.width)
	p, right := make([]float64, len(s.classes)), make([]bool, len(s.classes))
	for i := range p {
		p[i], right[i] = logit.LogProb(logits[i*s.width:][:s.width], class), s.classes[i] == class
	}
	if !slices.Contains(right, true) {
		return 0
	}
	return metrics.AveragePrecision(p, right)
}

// guesses reports whether the validation score is no better than the score of guesses by more than chance.
func (t *Task) guesses(r *judge.Report, s judge.Score) bool {
	n, value, mean, variance := float64(len(r.Judged)), s.Value, 0.0, 1.0
	switch s.Name {
	case "spearman":
	case "r2": // the square of a correlation
		value = math.Sqrt(max(0, value))
	case "accuracy":
		_, mean, _ = t.MostFrequent("accuracy")
		variance = mean * (1 - mean)
	case "mrr":
		candidates, squares := map[string]bool{}, 0.0
		for _, j := range r.Judged {
			for text := range strings.SplitSeq(j.References[0], "\t") {
				candidates[text] = true
			}
		}
		total := float64(len(candidates))
		for rank := 1.0; rank <= total; rank++ { // all ranks are equally likely
			mean, squares = mean+1/rank/total, squares+1/rank/rank/total
		}
		variance = squares - mean*mean
	default: // a text, which isn't guessed
		return false
	}
	return value <= mean+normalChance*math.Sqrt(variance/n)
}
