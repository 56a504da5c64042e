package task

import (
	"context"
	"math"
	"strings"
)

// judgeValidation lets the trained model answer the validation rows, calibrates it, and sets the fields of the summary
// that depend on single answers: see Summary.Chance. Only a first process calibrates.
func (t *Task) judgeValidation(ctx context.Context, s *Summary, first bool) error {
	t.temperature = 1
	k, c := t.Config.Kind(), &t.Config
	calibrates := first && t.calibrates()
	if !s.Best.Validated || !c.fromRows() || !k.Embeds && !(first && (calibrates || c.Task.Pairs || t.baseline != nil)) {
		return nil
	}
	var o PredictOptions
	examples := t.Examples()
	if calibrates && len(examples) <= calibrationScores/len(c.Task.Classes) {
		o.Top = len(c.Task.Classes)
	}
	r, err := t.Judge(ctx, examples, o)
	if err == nil && calibrates {
		err = t.calibrate(ctx, r.Judged, o.Top > 0)
	}
	if err != nil {
		return err
	}
	if k.Embeds {
		s.Score.ofTexts(r)
		s.validation(s.Score)
		s.Baseline = r.Baseline
	}
	s.Chance, s.Guesses = r.chance, (k.Embeds || c.Task.Pairs) && t.guesses(r, s.Score)
	return nil
}

// calibrationScores limits the number of rows times classes from which calibrate fits the temperature.
const calibrationScores = 1 << 20

// calibrates reports whether calibrate can fit the temperature.
func (t *Task) calibrates() bool {
	return t.table != nil && t.Config.Task.Classes != nil && t.Config.fromRows()
}

// calibrate fits the temperature, by which predictors divide logits, to the validation rows of a file of labels (Guo et
// al., "On Calibration of Modern Neural Networks", 2017). Training goes on after the validation loss is lowest, when
// another value is monitored, and weights are chosen by few rows, so probabilities are too high. A temperature never
// changes which label is the likeliest. It is at least 1: if all of a few validation rows are right, the model needn't
// be surer.
//
// The argument judged has the validation rows. Unless their answers have all classes, calibrate answers some of them
// again.
func (t *Task) calibrate(ctx context.Context, judged []Judged, complete bool) error {
	classes := t.Config.Task.Classes
	if !complete {
		some := t.Examples()[:calibrationScores/len(classes)]
		r, err := t.Judge(ctx, some, PredictOptions{Top: len(classes)})
		if err != nil {
			return err
		}
		judged = r.Judged
	}
	index := map[string]int{}
	for i, class := range classes {
		index[class] = i
	}
	var scores []float32 // (rows, classes)
	var right []int
	for _, j := range judged {
		label, known := index[j.References[0]]
		if !known || j.Answer.Err != nil {
			continue
		}
		row := make([]float32, len(classes))
		for _, top := range j.Answer.Top {
			row[index[top.Text]] = float32(top.LogProb)
		}
		scores, right = append(scores, row...), append(right, label)
	}
	if right != nil {
		t.temperature = temperatureOf(scores, right, len(classes))
	}
	return nil
}

// guesses reports whether the validation score is no better than the score of guesses by more than chance.
func (t *Task) guesses(r *Report, s Score) bool {
	n, value, mean, variance := float64(len(r.Judged)), s.Value, 0.0, 1.0
	switch {
	case t.Config.Kind().Numbers: // R² is the square of a correlation
		value = math.Sqrt(max(0, value))
	case t.Config.Kind().Classes:
		_, mean, _ = t.MostFrequent("accuracy")
		variance = mean * (1 - mean)
	case !r.scored():
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
	}
	return value <= mean+normalChance*math.Sqrt(variance/n)
}
