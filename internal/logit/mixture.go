package logit

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/heed-go/heed/internal/runfolder"
)

// A Mixture makes one answer of those of a network and of a linear model. With the linear model's weight w and the
// temperature T, it is log p = ((1 − w)·log p_network + w·log p_linear)/T + c. Numbers are a weighted mean. The zero
// Mixture is the network alone.
type Mixture struct {
	Linear      float64 // w, from 0 to 1
	Temperature float64 // T; 0 means 1
}

// Keys of a mixture in the metadata of the weights. A key is missing if its number is 0.
const (
	linearKey      = "heed.linear"
	temperatureKey = "heed.temperature"
)

// Metadata returns the metadata for the weights of a run that answers with the mixture.
func (x Mixture) Metadata(run string) map[string]string {
	metadata := runfolder.Metadata(run)
	for key, value := range map[string]float64{linearKey: x.Linear, temperatureKey: x.Temperature} {
		if value != 0 {
			metadata[key] = strconv.FormatFloat(value, 'g', -1, 64)
		}
	}
	return metadata
}

// ReadMixture reads a mixture from the metadata of weights.
func ReadMixture(metadata map[string]string) (x Mixture, err error) {
	for _, n := range []struct {
		key         string
		value       *float64
		least, most float64
	}{{linearKey, &x.Linear, 0, 1}, {temperatureKey, &x.Temperature, 1 / mostTemperature, mostTemperature}} {
		text, ok := metadata[n.key]
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= n.least && v <= n.most) {
			return x, fmt.Errorf("%s: its %s must be from %g to %g, got %.40q", runfolder.WeightsFile, n.key, n.least, n.most, text)
		}
		*n.value = v
	}
	return x, nil
}

// Logits returns the mixed logits of one or several choices, (choices, classes). Scores that have the weight 0 may be
// nil. The result may use the memory of network.
func (x Mixture) Logits(network, linear []float32, classes int) []float32 {
	out := network
	if x.Linear > 0 {
		out = make([]float32, max(len(network), len(linear)))
		for _, part := range []struct {
			scores []float32
			weight float64
		}{{network, 1 - x.Linear}, {linear, x.Linear}} {
			for i := 0; part.weight > 0 && i < len(out); i += classes {
				scores := part.scores[i:][:classes]
				best, logProb := Likeliest(scores)
				for k, s := range scores {
					out[i+k] += float32(part.weight * (float64(s-scores[best]) + logProb))
				}
			}
		}
	}
	if x.Temperature != 0 {
		for i := range out {
			out[i] /= float32(x.Temperature)
		}
	}
	return out
}

// Odds returns the mixed logits of yes-or-no answers, which are the logarithms of their odds. A side that has the
// weight 0 may be nil.
func (x Mixture) Odds(network, linear []float32) []float32 {
	out := make([]float32, max(len(network), len(linear)))
	for _, part := range []struct {
		logits []float32
		weight float64
	}{{network, 1 - x.Linear}, {linear, x.Linear}} {
		for i := 0; part.weight > 0 && i < len(out); i++ {
			out[i] += float32(part.weight / cmp.Or(x.Temperature, 1) * float64(part.logits[i]))
		}
	}
	return out
}

// Number returns the weighted mean of two numbers.
func (x Mixture) Number(network, linear float64) float64 {
	return (1-x.Linear)*network + x.Linear*linear
}

// NumberOf is Number of the first numbers of slices. A slice whose number has the weight 0 may be empty.
func (x Mixture) NumberOf(network, linear []float32) float64 {
	var numbers [2]float64
	for i, side := range [][]float32{network, linear} {
		if len(side) > 0 {
			numbers[i] = float64(side[0])
		}
	}
	return x.Number(numbers[0], numbers[1])
}

// mostTemperature is the greatest temperature, and the inverse of the least one.
const mostTemperature = 100.0
