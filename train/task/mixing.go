package task

import (
	"math"
	"slices"

	"github.com/heed-go/heed/internal/logit"
)

// Sides are what a network and a linear model compute for the same choices or numbers, and what is right.
type sides struct {
	network, linear []float32 // (choices, classes) or (numbers)
	classes         []int     // right classes
	numbers         []float64 // right numbers, standardised; nil for classes
	width           int       // number of classes, or 1

	// If pairs is true, each choice is between no and yes for one of several labels: no has the score 0, and yes the
	// logit of the label. The class of yes is 1.
	pairs bool
}

// add adds one row. The targets are its right classes or its number.
func (s *sides) add(network, linear []float32, targets []float64) {
	if s.pairs {
		network, linear = paired(network), paired(linear)
	}
	s.network, s.linear = append(s.network, network...), append(s.linear, linear...)
	if s.numbers != nil {
		s.numbers = append(s.numbers, targets...)
	} else {
		s.classes = append(s.classes, intsOf(targets)...)
	}
}

// paired returns the scores of no and yes for logits of yes.
func paired(logits []float32) []float32 {
	pairs := make([]float32, 2*len(logits))
	for i, z := range logits {
		pairs[2*i+1] = z
	}
	return pairs
}

// unpaired returns the logits of paired scores.
func unpaired(pairs []float32) []float32 {
	logits := make([]float32, len(pairs)/2)
	for i := range logits {
		logits[i] = pairs[2*i+1] - pairs[2*i]
	}
	return logits
}

// usualLinear is the linear model's weight that is best for most files. A network that learned these rows alone knows
// little that the linear model doesn't. See docs/results.md.
func (c *Config) usualLinear() float64 {
	if c.From.Dir == "" {
		return 0.95
	}
	return 0.5
}

// sharpening is the temperature with which mix counts wrong answers: the probabilities of all other answers, added up,
// once the likeliest ones are likelier. It is nearly the number of wrong answers, with less noise. The weight with the
// least cross-entropy is too low for a linear model, whose answers are better than its probabilities.
const sharpening = 0.5

// mix returns the mixture that fits best. The network is calibrated before, so that a weight means the same for a
// network that is too sure. The weight that few rows choose is noise, so one that differs from the usual weight by 1
// must save four wrong answers, or for numbers as much as two standard deviations.
func (s *sides) mix(usual float64) logit.Mixture {
	const steps = 20
	calibrated, sure, scale := *s, 1.0, 0.0
	if s.numbers == nil {
		sure = temperatureOf(s.network, s.classes, s.width, 1)
		calibrated.network = logit.Mixture{Temperature: sure}.Logits(slices.Clone(s.network), nil, s.width)
	} else { // errors are compared with those of the better side
		scale = 8 * min(s.loss(logit.Mixture{}, nil), s.loss(logit.Mixture{Linear: 1}, nil))
	}
	best, least := logit.Mixture{}, math.Inf(1)
	for i := range steps + 1 {
		x := logit.Mixture{Linear: float64(i) / steps}
		cost := math.Abs(x.Linear - usual) // times four answers or two standard deviations
		if s.numbers == nil {
			cost += calibrated.wrong(logit.Mixture{Linear: x.Linear, Temperature: sharpening}) / 4
		} else if scale > 0 {
			cost += float64(len(s.numbers)) * s.loss(x, nil) / scale
		}
		if cost < least {
			best, least = x, cost
		}
	}
	if s.numbers == nil { // one weight and one temperature for the network as it is
		best.Temperature = temperatureOf(best.Logits(calibrated.network, s.linear, s.width), s.classes, s.width, leastTemperature)
		network, linear := (1-best.Linear)/sure/best.Temperature, best.Linear/best.Temperature
		best = logit.Mixture{Linear: rounded(linear / (network + linear)), Temperature: min(rounded(1/(network+linear)), 1/leastScale)}
	}
	return best
}

func rounded(x float64) float64 { return math.Round(1e3*x) / 1e3 }

// loss returns the mean loss: the cross-entropy, weighted by class weights unless they are nil, or the squared error.
func (s *sides) loss(x logit.Mixture, weights []float64) float64 {
	total, count := 0.0, 0.0
	if s.numbers != nil {
		for i, number := range s.numbers {
			d := x.NumberOf(s.network[min(i, len(s.network)):], s.linear[min(i, len(s.linear)):]) - number
			total, count = total+d*d, count+1
		}
		return total / max(count, 1)
	}
	logits := x.Logits(slices.Clone(s.network), s.linear, s.width)
	for i, class := range s.classes {
		weight, row := 1.0, logits[i*s.width:][:s.width]
		if weights != nil {
			weight = weights[class]
		}
		total -= weight * logit.LogProb(row, class)
		count += weight
	}
	return total / max(count, math.SmallestNonzeroFloat64)
}

// wrong returns the sum of the probabilities that the mixture gives to other choices than the right ones.
func (s *sides) wrong(x logit.Mixture) (sum float64) {
	logits := x.Logits(slices.Clone(s.network), s.linear, s.width)
	for i, class := range s.classes {
		sum += 1 - math.Exp(logit.LogProb(logits[i*s.width:][:s.width], class))
	}
	return sum
}

// leastTemperature is the least temperature of a mixture. A network alone has at least 1: if all of a few validation
// rows are right, it needn't be surer.
const leastTemperature = 0.5

// temperatureOf returns the temperature with which the softmax of scores (choices, classes) has the least
// cross-entropy, but at least the given one.
func temperatureOf(scores []float32, right []int, classes int, least float64) float64 {
	return max(least, rounded(1/float64(bestScale(scores, right, classes))))
}

// bestScale returns the factor for the scores (choices, classes) with which their softmax has the least cross-entropy,
// from leastScale to mostScale.
func bestScale(scores []float32, right []int, classes int) float32 {
	// The cross-entropy is a convex function of the factor, so halving the range by the sign of its slope finds the
	// minimum.
	low, high := leastScale, mostScale
	for range 20 {
		middle := math.Sqrt(low * high)
		if slope(scores, right, classes, middle) > 0 {
			high = middle
		} else {
			low = middle
		}
	}
	return float32(math.Sqrt(low * high))
}

const leastScale, mostScale = 0.01, 100.0

// slope returns the derivative of the mean cross-entropy with respect to the factor for the scores. Targets are
// smoothed by one row's share, so that the factor stays finite if all rows have their highest score at their label
// (Platt, 1999).
func slope(scores []float32, right []int, classes int, scale float64) float64 {
	total, smoothing := 0.0, 1/float64(len(right)+1)
	for i, class := range right {
		row := scores[i*classes:][:classes]
		largest, average := math.Inf(-1), 0.0
		for _, s := range row {
			largest, average = max(largest, float64(s)), average+float64(s)/float64(classes)
		}
		sum, mean := 0.0, 0.0
		for _, s := range row {
			e := math.Exp(scale * (float64(s) - largest))
			sum, mean = sum+e, mean+e*float64(s)
		}
		total += mean/sum - (1-smoothing)*float64(row[class]) - smoothing*average
	}
	return total / float64(max(1, len(right)))
}
