package model

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// maskHead predicts the masked symbols of a text (Devlin et al., 2018).
type maskHead struct{ bare }

func (maskHead) about() facts {
	return facts{kind: data.KindMaskedText, use: "predict", aligned: true, masks: true, top: MaxBeam, units: "characters, bpe"}
}

func (maskHead) suit(m *pretrained.Config) error {
	switch {
	case m.Head == "mask":
	case m.Causal:
		return fmt.Errorf("a task of kind %s needs a model in which each token sees those after it, and this one is a language model", data.KindMaskedText)
	default: // without a head for masks, the embeddings are the weight of a head
		*m = m.States()
		m.Model.Tied, m.Model.EmbeddingScale = true, cmp.Or(m.Model.EmbeddingScale, 1)
		if m.Model.Projection != nil {
			m.Model.Transform = &layers.TransformConfig{Activation: layers.GELU, Norm: true}
		}
	}
	return nil
}

func (maskHead) network(m *Model) (network, error) {
	net, err := layers.NewEncoder(m.Params, m.Config.Model)
	if err != nil {
		return nil, err
	}
	config := *m.Config
	embeds, rule := &Model{Config: &config, Params: m.Params}, &config.Task
	if rule.Kind = data.KindEmbed; rule.Source == nil { // a rule with a Source cuts long texts
		rule.Source, err = tokenizer.NewVocab(rule.Alphabet)
		rule.Alphabet = ""
	}
	if err == nil {
		embeds.Coder, err = data.NewCoder(*rule)
	}
	if err != nil {
		return nil, err
	}
	embeds.layout = embeds.Coder.Layout()
	if embeds.Network, err = newEmbedder(m, net); err != nil {
		return nil, err
	}
	c := newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, Classes)
	})
	c.trunk, c.below = net.Trunk, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.States(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, Dim)
	}
	return filler{c, embeds}, nil
}

// A filler is the network of masked text.
type filler struct {
	classifier
	embeds *Model // makes vectors of texts from the states before the head
}

// predictor returns a predictor that puts the likeliest symbols in place of the masks of a source.
func (f filler) predictor(s batchShape) (predictor, error) {
	mask, classes := f.Coder.(*data.MaskedText).ID(), f.layout.Classes
	_, target := f.Coder.Tokenizers()
	known := min(target.Len(), classes) // without ids that a published tokenizer lacks
	return f.chooser(f, s, func(logits []float32, q *query) {
		choices := []choice{{}}
		for p, id := range q.ids {
			if id == mask {
				choices = extended(choices, logits[p*classes:][:known], q.top)
			}
		}
		for i, c := range choices {
			choices[i].targets = slices.Clone(q.ids)
			for p, id := range q.ids {
				if id == mask {
					choices[i].targets[p], c.targets = c.targets[0], c.targets[1:]
				}
			}
		}
		q.choices = choices
	})
}
