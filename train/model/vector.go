package model

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// vectorHead makes vectors of texts.
type vectorHead struct{ bare }

func (vectorHead) about() facts {
	return facts{kind: data.KindEmbed, use: "embed", rows: true, vectors: true, units: "characters, tokens, words, bpe"}
}

// published accepts all models: without the head, they make vectors.
func (vectorHead) published(_ *pretrained.Config, r *data.Rule) bool {
	r.About, r.Classes = "a vector of a text", nil
	return true
}

func (vectorHead) describe(c *Config, d *Description) {
	d.Predict = fmt.Errorf("%w, or heed search to find the rows of a file", d.Predict)
	for _, err := range []*error{&d.Predict, &d.Rank, &d.Explain} {
		if c.Opened() { // a folder or the base of an adapter without the name of its head, or without a head
			*err = fmt.Errorf("%w; if the model has a head, architectures in its config.json must name it, as in BertForTokenClassification", *err)
		}
	}
}

func (vectorHead) network(m *Model) (network, error) {
	net, err := layers.NewEncoder(m.Params, m.Config.Model)
	if err != nil {
		return nil, err
	}
	m.table = net.Embedding.Weight
	return newEmbedder(m, net)
}

// newEmbedder returns the network of a model that pools the states of an encoder before its head, if it has one.
func newEmbedder(m *Model, net *layers.Encoder) (_ embedder, err error) {
	head, dense := m.Config.Head, (*layers.Linear)(nil)
	if d := head.Dense; d != nil {
		dense, err = layers.NewLinear(m.Params.Scope("dense"), m.Config.Model.Dim, d.Width, layers.LinearConfig{NoBias: d.NoBias})
	}
	return embedder{reader{m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		x, err := net.States(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, Dim)
		if err == nil {
			x, err = layers.Pool(b, x, inputs[1], head.Pooling) // -> (B, Dim)
		}
		if d := head.Dense; err == nil && d != nil && d.Activation != nil {
			x, err = (&layers.Transform{Linear: dense, Activation: *d.Activation}).Forward(b, x) // -> (B, Width)
		} else if err == nil && d != nil {
			x, err = dense.Forward(b, x)
		}
		if err == nil && head.Normalize {
			x, err = layers.Normalize(b, x)
		}
		return x, err
	}}}, err
}

// An embedder is a network whose output is one vector per text.
type embedder struct{ reader }

func (e embedder) predictor(s batchShape) (predictor, error) {
	return e.chooser(e, s, func(output []float32, q *query) { q.choices = []choice{{vector: slices.Clone(output)}} })
}

func (embedder) answer(choice, *Answer) error { return nil }
