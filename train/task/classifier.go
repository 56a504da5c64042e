package task

import (
	"cmp"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A classifier is a network that chooses among the ids of the Layout's Classes, once or at every position. Its output
// has their logits, and its loss is the cross-entropy.
type classifier struct {
	reader
	more []measure // metrics besides accuracy; nil with a head

	// If head isn't nil, training applies its head to the result of below. The network also computes logits.
	head  *layers.Trunk
	below func(b *layers.Build, inputs G.Nodes) (*G.Node, error)
}

// A measure adds metrics to a graph.
type measure func(b *layers.Build, logits, targets *G.Node) ([]train.Metric, error)

// one returns the measure of one metric.
func one(metric func(b *layers.Build, logits, targets *G.Node) (train.Metric, error)) measure {
	return func(b *layers.Build, logits, targets *G.Node) ([]train.Metric, error) {
		m, err := metric(b, logits, targets)
		return []train.Metric{m}, err
	}
}

// newClassifier returns the classifier of a model whose function net computes logits.
func newClassifier(m *Model, net func(b *layers.Build, inputs G.Nodes) (*G.Node, error)) classifier {
	return classifier{reader: reader{m, net}}
}

// targets returns the correct ids.
func (c classifier) targets(b data.Batch) []*tensor.Dense {
	return []*tensor.Dense{intTensor(b.Targets, b.Size, b.TargetLen)}
}

func (c classifier) states(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
	r := c.reader
	if c.head != nil {
		r.net = c.below
	}
	return r.forward(b, inputs)
}

func (c classifier) loss(b *layers.Build, out *G.Node, targets G.Nodes) (loss layers.Loss, metrics []train.Metric, err error) {
	o := layers.CrossEntropyOptions{ClassWeights: c.classWeights}
	if b.Mode == layers.Training {
		o.LabelSmoothing = c.Config.Training.LabelSmoothing
	}
	if c.head == nil {
		loss, err = layers.CrossEntropy(b, out, targets[0], o)
	} else {
		loss, out, err = c.head.CrossEntropy(b, out, targets[0], o) // out is the predicted ids
	}
	if err != nil {
		return layers.Loss{}, nil, err
	}
	right, counted, err := ops.CountRight(b.Env(), out, targets[0], c.unknownClass(), !c.Config.Kind().aligned)
	if err != nil {
		return layers.Loss{}, nil, err
	}
	metrics = []train.Metric{{Name: "accuracy", Sum: right, Count: counted}}
	for _, add := range c.more {
		more, err := add(b, out, targets[0])
		if err != nil {
			return layers.Loss{}, nil, err
		}
		metrics = append(metrics, more...)
	}
	return loss, metrics, nil
}

// unknownClass returns the class that stands for unknown symbols in answers, or -1 if there is none. A prediction of
// this class is never right, neither here nor in Judge, because it doesn't tell which symbol was meant.
func (c classifier) unknownClass() int {
	if c.Config.Task.Classes != nil {
		return -1
	}
	_, target := c.coder.Tokenizers()
	return target.Unknown()
}

func (c classifier) answer(chosen choice) (text string, number *float64, err error) {
	text, err = c.coder.Answer(chosen.targets)
	return text, nil, err
}

// predictor returns a predictor that chooses the likeliest classes of all valid positions together. For text, it
// chooses only the class that follows the last position.
func (c classifier) predictor(s batchShape) (predictor, error) {
	classes := c.layout.Classes
	return c.chooser(c, s, func(logits []float32, q *query) {
		first, end := 0, min(len(logits)/classes, len(q.ids))
		if c.Config.Kind().causal {
			first = end - 1
		}
		for p := first; p < end; p++ {
			if q.targets == nil || q.targets[p] != data.Ignore {
				q.output = append(q.output, logits[p*classes:][:classes]...)
			}
		}
		if !q.keep {
			q.choices, q.output = c.mixed(*q, q.mixture), nil
		}
	})
}

func (c classifier) mixed(q query, x mixture) []choice {
	choices := []choice{{}}
	for logits := range slices.Chunk(x.logits(q.output, q.linear, c.layout.Classes), c.layout.Classes) {
		choices = extended(choices, logits, q.top)
	}
	return choices
}

// extended returns the n likeliest choices with one more target, given its logits. The choices must be likeliest first.
func extended(choices []choice, logits []float32, n int) []choice {
	best, logProb := likeliest(logits)
	if n <= 1 {
		choices[0].targets = append(choices[0].targets, best)
		choices[0].logProb += logProb
		return choices
	}
	classes := make([]int, len(logits))
	for i := range classes {
		classes[i] = i
	}
	slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	var longer []choice
	for i, c := range choices {
		for j := 0; j < len(classes) && (i+1)*(j+1) <= n; j++ { // for a greater j, n others are at least as likely
			longer = append(longer, choice{targets: append(slices.Clip(c.targets), classes[j]), logProb: c.logProb + logProb + float64(logits[classes[j]]-logits[best])})
		}
	}
	slices.SortStableFunc(longer, func(a, b choice) int { return cmp.Compare(b.logProb, a.logProb) })
	return longer[:min(n, len(longer))]
}

// likeliest returns the class with the highest logit and the logarithm of its probability. If several logits are equal,
// it returns the first.
func likeliest(logits []float32) (class int, logProb float64) {
	for i, x := range logits {
		if x > logits[class] {
			class = i
		}
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - logits[class]))
	}
	return class, -math.Log(sum)
}
