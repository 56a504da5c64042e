package task

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// A learner is what a network learns.
type learner interface {
	// targets returns the values of the nodes that the loss compares the output with.
	targets(b data.Batch) []*tensor.Dense

	// loss adds the loss of the network's States, and the metrics of the kind. The targets have the values that the
	// function targets returns.
	loss(b *layers.Build, out *G.Node, targets G.Nodes) (loss layers.Loss, computed []train.Metric, err error)
}

// A labelLearner learns one of the ids of the Layout's Classes, once or at every position. Its loss is the
// cross-entropy.
type labelLearner struct {
	model   *model.Model
	config  *Config
	weights []float64 // weights of the classes in the loss; nil means 1 for each
	whole   bool      // an answer is right as a whole; otherwise each symbol counts
	more    []measure // metrics besides accuracy; nil with a head
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

// targets returns the correct ids.
func (c labelLearner) targets(b data.Batch) []*tensor.Dense {
	return []*tensor.Dense{ops.IntTensor(b.Targets, b.Size, b.TargetLen)}
}

func (c labelLearner) loss(b *layers.Build, out *G.Node, targets G.Nodes) (loss layers.Loss, metrics []train.Metric, err error) {
	o := layers.CrossEntropyOptions{ClassWeights: c.weights}
	if b.Training {
		o.LabelSmoothing = c.config.Training.LabelSmoothing
	}
	if trunk := c.model.Network.Trunk(); trunk == nil {
		loss, err = layers.CrossEntropy(b, out, targets[0], o)
	} else {
		loss, out, err = trunk.CrossEntropy(b, out, targets[0], o) // out is the predicted ids
	}
	if err != nil {
		return layers.Loss{}, nil, err
	}
	right, counted, err := ops.CountRight(b.Env(), out, targets[0], c.unknownClass(), c.whole)
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
// this class is never right, neither here nor in package judge, because it doesn't tell which symbol was meant.
func (c labelLearner) unknownClass() int {
	if c.config.Task.Classes != nil {
		return -1
	}
	_, target := c.model.Coder.Tokenizers()
	return target.Unknown()
}
