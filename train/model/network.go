package model

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/layers"
)

// A network is what a model computes. Training adds a loss to it.
type network interface {
	// Inputs adds the nodes that the network reads to a graph, for batches with size rows. Values returns their values
	// for a batch.
	Inputs(g *G.ExprGraph, size int, l data.Layout) G.Nodes
	Values(b data.Batch) []*tensor.Dense

	// Forward adds the network to the graph of its inputs, and returns its output.
	Forward(b *layers.Build, inputs G.Nodes) (out *G.Node, err error)

	// States is like Forward, but leaves out the head of the Trunk, if that isn't nil.
	States(b *layers.Build, inputs G.Nodes) (out *G.Node, err error)
	Trunk() *layers.Trunk

	// predictor returns a predictor for batches of this shape. The method answer converts one of its choices for an
	// input to the fields of an answer that aren't the same for all kinds of tasks, such as Text, Number and Spans.
	predictor(s batchShape) (predictor, error)
	answer(c choice, a *Answer) error
}

// A mixer is a network whose answers are mixed with those of a linear model.
type mixer interface {
	// mixed returns the choices of a query: from its output, unless the linear model alone answers, and from the linear
	// model's scores, unless the network alone answers.
	mixed(q query, x logit.Mixture) []choice
}
