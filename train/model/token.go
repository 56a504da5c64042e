package model

import (
	"context"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/layers/pretrained"
)

// textHead predicts the next symbol of a text.
type textHead struct{ bare }

func (textHead) about() facts {
	return facts{kind: data.KindText, use: "generate", aligned: true, causal: true, top: unlimited, units: "characters, bpe"}
}

func (textHead) suit(m *pretrained.Config) error {
	if m.Head != "text" {
		return fmt.Errorf("a task of kind %s needs a model that predicts the next token, and this one doesn't", data.KindText)
	}
	return nil
}

func (textHead) published(m *pretrained.Config, r *data.Rule) bool {
	r.About = "the next token of a text"
	return m.Head == "text"
}

func (textHead) network(m *Model) (network, error) {
	net, err := layers.NewDecoder(m.Params, m.Config.Model)
	if err != nil {
		return nil, err
	}
	c := newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], packed(b, inputs)) // (B, Len, Classes)
	})
	c.trunk, c.below = net.Trunk, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.States(b, inputs[0], packed(b, inputs)) // (B, Len, Dim)
	}
	return writer{c, net}, nil
}

// packed returns the mask of batches of packed rows, whose inputs are ids, documents and positions, and sets the
// positions. For other batches it returns the zero Mask.
func packed(b *layers.Build, inputs G.Nodes) layers.Mask {
	if len(inputs) < 3 {
		return layers.Mask{}
	}
	b.Positions = inputs[2]
	return layers.Mask{Documents: inputs[1]}
}

// A writer is the network of a language model.
type writer struct {
	classifier
	net *layers.Decoder
}

// predictor returns a predictor of the next token. For a published model, it computes only the logits that follow the
// last position, because all logits of a long text may not fit in memory. It leaves out ids that the tokenizer lacks.
func (w writer) predictor(s batchShape) (predictor, error) {
	if !w.Config.Published() {
		return w.classifier.predictor(s)
	}
	_, target := w.Coder.Tokenizers()
	session, err := decode.New(w.net, decode.Config{Adapter: w.adapter, Batch: s.size, Capacity: s.width, Vocab: min(target.Len(), w.layout.Tokens), Cores: s.cores})
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, rows []query) error {
		session.Reset()
		tokens := make([][]int, s.size)
		for i, q := range rows {
			tokens[i] = q.ids
		}
		logits, err := session.Step(tokens)
		if err != nil {
			return err
		}
		for i := range rows {
			row := make([]float32, len(logits[i]))
			for j, x := range logits[i] {
				row[j] = float32(x)
			}
			rows[i].choices = extended([]choice{{}}, row, rows[i].top)
		}
		return nil
	}, nil
}
