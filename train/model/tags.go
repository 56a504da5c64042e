package model

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train/score"
)

// tagHead gives each symbol of a source one tag. Units can't be byte pairs: only a part of a word would have the tag.
type tagHead struct{ bare }

func (tagHead) about() facts {
	return facts{kind: data.KindTagging, use: "predict", rows: true, aligned: true, linear: true, top: MaxBeam, units: "characters, tokens, words", answers: "characters, tokens"}
}

// published leaves the tags in the rule's Classes: each piece of a text has one of them.
func (tagHead) published(m *pretrained.Config, r *data.Rule) bool {
	if m.Head != "tags" {
		return false
	}
	r.About, r.Classes = "the entities in a text", m.Labels
	return true
}

// opensTags reports whether the model is a published one with a head for tags.
func (c *Config) opensTags() bool { return c.Task.Kind == data.KindTagging && c.Task.Classes != nil }

func (tagHead) describe(c *Config, d *Description) {
	if c.EntityTags() == nil && !c.opensTags() {
		return
	}
	text, offset := map[string]any{"type": "string"}, map[string]any{"type": "integer", "minimum": 0}
	properties := map[string]any{"label": text, "start": offset, "end": offset, "text": text}
	if c.opensTags() {
		d.Entities = EntityRules.Names()
		d.Top, properties["score"] = 0, map[string]any{"type": "number", "description": "the mean probability of the entity's tags"}
	}
	d.Schema["spans"] = map[string]any{
		"type": "array", "items": map[string]any{
			"type": "object", "properties": properties,
			"required": []any{"label", "start", "end", "text"},
		},
		"description": "the entities that the tags mark: their bytes in the input, in UTF-8, from start up to but not including end",
	}
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
	if m.Config.opensTags() {
		return entityFinder{c}, err
	}
	return tagger{c, m.Config.EntityTags()}, err
}

// A tagger is the network of tagging.
type tagger struct {
	classifier
	tags []string // text of each id, or nil: see Config.EntityTags
}

// answer also sets the entities that the chosen tags mark in the input.
func (t tagger) answer(c choice, a *Answer) error {
	if t.tags != nil {
		tags := make([]string, len(c.targets))
		for i, id := range c.targets {
			tags[i] = t.tags[id]
		}
		a.Spans = t.SpansOf(a.Input, tags)
	}
	return t.classifier.answer(c, a)
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
		spans = append(spans, Span{Label: e.Type, Start: start, End: end, Text: source[start:end]})
	}
	return spans
}
