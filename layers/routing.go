package layers

import G "gorgonia.org/gorgonia"

// A Routing says which experts of a layer the tokens of a graph have. To get the values, call gorgonia.Read for its
// nodes before you make the VM.
type Routing struct {
	Layer  string  // the layer's scope, such as "blocks.0.feedforward"
	Chosen *G.Node // (N, Top), dtype tensor.Int: the numbers of each token's experts, the best first
	Shares *G.Node // (N, Top): their shares

	// Balance is E·Σ f·P over the experts, where f is the share of all choices that chose an expert, and P the mean of
	// its scores. It is 1 if all experts are chosen equally often, and larger otherwise. It is nil if the Balance of
	// the ExpertsConfig is 0.
	Balance *G.Node

	weight float64
}

// Routings returns the Routing of every layer of experts that Forward added, in order.
func (b *Build) Routings() []Routing { return b.routings }
