package task

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/heed-go/heed/internal/runfolder"
)

// temperatureKey is the key of the temperature in the metadata of the weights. If there is none, the temperature is 1.
const temperatureKey = "heed.temperature"

// keptKey is the key in the metadata of weights with which the model answers as its baseline.
const keptKey = "heed.kept_baseline"

// weightsMetadata returns the metadata for the weights of a finished run.
func (m *Model) weightsMetadata(run string, keptBaseline bool) map[string]string {
	metadata := runfolder.Metadata(run)
	if keptBaseline {
		metadata[keptKey] = "true"
	}
	if m.temperature > 1 {
		metadata[temperatureKey] = strconv.FormatFloat(m.temperature, 'g', -1, 64)
	}
	return metadata
}

// readTemperature sets the temperature from the metadata of the weights.
func (m *Model) readTemperature(metadata map[string]string) error {
	text, ok := metadata[temperatureKey]
	if !ok {
		m.temperature = 1
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 1 && x <= 1/leastScale) {
		return fmt.Errorf("%s: its %s must be from 1 to %g, got %.40q", runfolder.WeightsFile, temperatureKey, 1/leastScale, text)
	}
	m.temperature = x
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

// temperatureOf returns the temperature with which the softmax of scores (rows, classes) has the least cross-entropy,
// but at least 1.
func temperatureOf(scores []float32, labels []int, classes int) float64 {
	return max(1, math.Round(1e3/float64(bestScale(scores, labels, classes)))/1e3)
}
