package task

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/task/judge"
)

// A model that learned noise by heart is less sure of its answers after calibration, and gives the same answers. The
// model of the folder has the same probabilities.
func TestTemperature(t *testing.T) {
	var rows strings.Builder
	for i := range 120 { // labels that the words don't say
		fmt.Fprintf(&rows, "w%d w%d\t%s\n", i, (i*7)%120, []string{"a", "b", "c"}[i*i%7%3])
	}
	c := forRows(t, data.KindClassification, rows.String())
	c.Data.SourceUnits, c.Data.Validation, c.Mix = tokenizer.Tokens, 30, false
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 16, 1, 2
	c.Training.MaxEpochs, c.Training.Stopping.KeepLast, c.Training.Optimizer.LearningRate = 15, true, 0.01
	task, dir := trained(t, c)
	if task.Mixture.Temperature <= 1.2 {
		t.Fatalf("the mixture is %+v, want a temperature above 1.2 for a model that learned noise", task.Mixture)
	}
	calibrated := judged(t, task, task.Examples(), PredictOptions{})
	opened := must.Get(Open(dir))(t)
	again := must.Get(judge.Answers(t.Context(), opened, task.Examples(), PredictOptions{}))(t)
	fitted := task.Mixture
	task.Mixture = mixture{}
	plain := judged(t, task, task.Examples(), PredictOptions{})
	for i, j := range calibrated.Judged {
		if p := plain.Judged[i].Answer; j.Answer.Text != p.Text || j.Answer.LogProb >= p.LogProb {
			t.Errorf("the answer is %q with log probability %g, want %q, less sure than %g", j.Answer.Text, j.Answer.LogProb, p.Text, p.LogProb)
		}
		if o := again.Judged[i].Answer; j.Answer.LogProb != o.LogProb {
			t.Errorf("the model of the folder has the log probability %g, want %g", o.LogProb, j.Answer.LogProb)
		}
	}

	if err := opened.Load(dir); err != nil || opened.Mixture != fitted {
		t.Errorf("Load: got %v and the mixture %+v, want %+v", err, opened.Mixture, fitted)
	}
}

// If all of a few rows are right, the model doesn't become surer.
func TestTemperatureOf(t *testing.T) {
	for name, c := range map[string]struct {
		scores    []float32
		labels    []int
		low, high float64
	}{
		"all right":         {[]float32{1, 0, 0, 1, 1, 0}, []int{0, 1, 0}, 1, 1},
		"sure and wrong":    {[]float32{9, 0, 9, 0, 9, 0, 9, 0}, []int{0, 0, 0, 1}, 5, 20}, // p = 3/4 needs a difference of 1.1
		"as sure as it may": {[]float32{1.1, 0, 1.1, 0, 1.1, 0, 1.1, 0}, []int{0, 0, 0, 1}, 1, 2},
	} {
		if got := temperatureOf(c.scores, c.labels, 2, 1); got < c.low || got > c.high {
			t.Errorf("%s: got %g, want %g to %g", name, got, c.low, c.high)
		}
	}
}
