package beside

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// maxTags is the largest number of tags that get transitions. The time for a symbol grows with its square.
const maxTags = 128

// mostTransition limits a transition, so that no sequence of tags has the probability 0.
const mostTransition = 40.0

// usualWeight is a good weight of transitions for most files: a symbol's neighbours are features of its scores, too.
// The weight that few rows choose is noise, so one that differs from the usual weight by 1 must make the right tags
// likelier by the factor e⁴.
const usualWeight = 0.5

// LearnTransitions counts transitions between the tags of sources that the model learned from. Their weight makes the
// tags of other sources likeliest, for which the model has computed scores (symbols, classes). These scores become what
// SourceScores returns. The symbols of source i have the numbers from starts[i] to starts[i+1]-1.
func (b *Model) LearnTransitions(tags []float64, starts []int, scores []float32, others []float64, otherStarts []int) {
	classes := b.Outputs()
	if classes > maxTags {
		return
	}
	ratios, least := logRatios(tags, starts, classes), math.Inf(1)
	for step := range 11 {
		weight := float64(step) / 10
		x := make([]float64, len(ratios))
		for i, r := range ratios {
			x[i] = weight * r
		}
		cost, c := 4*math.Abs(weight-usualWeight), newChain(x, classes)
		for i := range len(otherStarts) - 1 {
			first, end := otherStarts[i], otherStarts[i+1]
			cost -= c.logProb(scores[first*classes:end*classes], others[first:end])
		}
		if cost < least {
			b.Transitions, least = x, cost
		}
	}
	b.chainScores(scores, otherStarts)
}

// chainScores changes the scores (symbols, classes) of sources so that they take the transitions into account.
func (b *Model) chainScores(scores []float32, starts []int) {
	if b.Transitions == nil {
		return
	}
	c, classes := newChain(b.Transitions, b.Outputs()), b.Outputs()
	for i := range len(starts) - 1 {
		c.update(scores[starts[i]*classes : starts[i+1]*classes])
	}
}

// readTransitions sets the transitions from the metadata of a model's file.
func (b *Model) readTransitions(text string) error {
	err := json.Unmarshal([]byte(text), &b.Transitions)
	if err == nil && len(b.Transitions) != (b.Outputs()+1)*b.Outputs() {
		err = fmt.Errorf("it has %d transitions for %d tags", len(b.Transitions), b.Outputs())
	}
	if err == nil && slices.ContainsFunc(b.Transitions, func(x float64) bool { return math.Abs(x) > mostTransition }) {
		err = fmt.Errorf("its transitions must be from %g to %g", -mostTransition, mostTransition)
	}
	return err
}

// logRatios returns the logarithms of how much likelier each tag is after each other one than elsewhere. After each
// tag, ten more symbols are counted, whose tags are as frequent as elsewhere.
func logRatios(tags []float64, starts []int, classes int) []float64 {
	counts, totals, rows := make([]float64, (classes+1)*classes), make([]float64, classes), make([]float64, classes+1)
	for i := range len(starts) - 1 {
		row := 0
		for _, tag := range tags[starts[i]:starts[i+1]] {
			counts[row*classes+int(tag)]++
			totals[int(tag)]++
			rows[row]++
			row = int(tag) + 1
		}
	}
	for i, count := range counts {
		p := (totals[i%classes] + 0.5) / (float64(len(tags)) + 0.5*float64(classes))
		counts[i] = math.Log((count + 10*p) / (rows[i/classes] + 10) / p)
	}
	return counts
}

// A chain computes with transitions. Its numbers are scaled, so that they are neither too large nor too small.
type chain struct {
	transitions []float64
	factors     []float64 // their exponentials
	classes     int
	forward     []float64 // (symbols, classes)
	backward    []float64 // (classes)
	next        []float64 // (classes)
}

func newChain(x []float64, classes int) *chain {
	factors := make([]float64, len(x))
	for i, v := range x {
		factors[i] = math.Exp(v)
	}
	return &chain{transitions: x, factors: factors, classes: classes, backward: make([]float64, classes), next: make([]float64, classes)}
}

// read computes, for each symbol, the probabilities of its tags given the scores up to it. It returns the logarithm of
// the sum over all sequences of tags, without the largest score of each symbol.
func (c *chain) read(scores []float32) (sum float64) {
	k := c.classes
	c.forward = slices.Grow(c.forward[:0], len(scores))[:len(scores)]
	for begin := 0; begin < len(scores); begin += k {
		now, largest, total := c.forward[begin:begin+k], slices.Max(scores[begin:begin+k]), 0.0
		copy(now, c.factors[:k])
		if begin > 0 {
			clear(now)
			for j, p := range c.forward[begin-k : begin] {
				for i, f := range c.factors[(j+1)*k:][:k] {
					now[i] += p * f
				}
			}
		}
		for i := range now {
			now[i] *= math.Exp(float64(scores[begin+i] - largest))
			total += now[i]
		}
		for i := range now {
			now[i] /= total
		}
		sum += math.Log(total)
	}
	return sum
}

// logProb returns the logarithm of the probability of tags.
func (c *chain) logProb(scores []float32, tags []float64) float64 {
	k, row, sum := c.classes, 0, -c.read(scores)
	for i, tag := range tags {
		some := scores[i*k:][:k]
		sum += float64(some[int(tag)]-slices.Max(some)) + c.transitions[row*k+int(tag)]
		row = int(tag) + 1
	}
	return sum
}

// leastProbability keeps logarithms of probabilities finite.
const leastProbability = 1e-30

// update replaces the scores of a source by the logarithms of the probabilities of each symbol's tags given all scores,
// with the forward-backward algorithm (Rabiner, 1989).
func (c *chain) update(scores []float32) {
	k := c.classes
	c.read(scores)
	for i := range c.backward {
		c.backward[i] = 1
	}
	for begin := len(scores) - k; begin >= 0; begin -= k {
		some, total, highest := scores[begin:begin+k], 0.0, 0.0
		largest := slices.Max(some)
		for i, s := range some {
			p := c.forward[begin+i] * c.backward[i]
			c.backward[i] *= math.Exp(float64(s - largest))
			c.forward[begin+i] = p
			total += p
		}
		for i := range some {
			some[i] = float32(math.Log(max(c.forward[begin+i]/total, leastProbability)))
		}
		for j := range c.next {
			c.next[j] = 0
			for i, f := range c.factors[(j+1)*k:][:k] {
				c.next[j] += f * c.backward[i]
			}
			highest = max(highest, c.next[j])
		}
		for j, x := range c.next {
			c.backward[j] = x / highest
		}
	}
}
