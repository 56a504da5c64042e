package task

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
)

// languageModel predicts the next symbol of a text.
type languageModel struct{ common }

var textKind = languageModel{common{Kind{
	Name: data.KindText, About: "the next character of a file",
	Generates: true, Unit: "characters", Right: "predicted", LossUnit: "nats",
	aligned: true, causal: true, units: "characters, bpe", maxLen: 64,
}}}

func (languageModel) defaults(c *Config) {
	c.Model.Dim, c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 64, 16, 200, 3000
}

func (languageModel) network(m *Model) (network, error) {
	net, err := layers.NewDecoder(m.Params, m.Config.Model)
	return writer{newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{}) // (B, Len, Classes)
	}), net}, err
}

// A writer is the network of a language model.
type writer struct {
	classifier
	net *layers.Decoder
}
