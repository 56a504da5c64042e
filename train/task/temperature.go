package task

import (
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

// temperatureOf returns the temperature with which the softmax of scores (rows, classes) has the least cross-entropy,
// but at least 1.
func temperatureOf(scores []float32, labels []int, classes int) float64 {
	return max(1, math.Round(1e3/float64(bestScale(scores, labels, classes)))/1e3)
}
