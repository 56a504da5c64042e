package model

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/score"
)

// tagHead gives each symbol of a source one tag. Units can't be byte pairs: only a part of a word would have the tag.
type tagHead struct{ bare }

func (tagHead) about() facts {
	return facts{kind: data.KindTagging, use: "predict", rows: true, aligned: true, linear: true, top: MaxBeam, units: "characters, tokens, words", answers: "characters, tokens"}
}

func (tagHead) network(m *Model) (network, error) {
	net, err := layers.NewEncoder(m.Params, m.Config.Model)
	m.features = func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		x, err := net.States(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, Dim)
		if err != nil {
			return nil, err
		}
		return net.Transform.Forward(b, x)
	}
	c := newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, Classes)
	})
	return tagger{c, m.Config.EntityTags()}, err
}

// A tagger is the network of tagging.
type tagger struct {
	classifier
	tags []string // text of each id, or nil: see Config.EntityTags
}

// spans returns the entities that the chosen tags mark in the input.
func (t tagger) spans(input string, c choice) []Span {
	if t.tags == nil {
		return nil
	}
	tags := make([]string, len(c.targets))
	for i, id := range c.targets {
		tags[i] = t.tags[id]
	}
	return t.SpansOf(input, tags)
}

// SpansOf returns the entities that tags mark in a source. It returns nil if the source doesn't have a tag per symbol.
func (m *Model) SpansOf(source string, tags []string) []Span {
	symbols, _, err := m.Config.Task.Tagged(source)
	if err != nil || len(symbols) != len(tags) {
		return nil
	}
	spans := []Span{}
	for _, e := range score.FindEntities(tags) {
		start, end := symbols[e.Start].Start, symbols[e.End-1].End
		spans = append(spans, Span{e.Type, start, end, source[start:end]})
	}
	return spans
}
