package model

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train/score"
)

// tagHead gives each symbol of a source one tag. Units can't be byte pairs: only a part of a word would have the tag.
type tagHead struct{}

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

func (tagHead) suit(m *pretrained.Config) error {
	if m.Head != "tags" {
		*m = m.States()
	}
	return nil
}

// loadTags loads the head of a published model for tags, if it knows all tags of this one. It takes the parameters out
// of the report's Kept. Only the unknown tag keeps its own weights.
func (m *Model) loadTags(s publishedStart, loaded *layers.LoadReport) error {
	target, places := m.Config.Task.Target, []int{}
	for id := range target.Len() - 1 {
		tag, err := target.Decode([]int{id})
		place := slices.Index(s.model.Labels, tag)
		if err != nil || place < 0 {
			return err
		}
		places = append(places, place)
	}
	p, err := layers.NewParams(m.Params.Dtype(), 0)
	if err == nil {
		_, err = layers.NewLinear(p.Blank().Scope("head"), m.Config.Model.Dim, len(s.model.Labels), layers.LinearConfig{NoBias: m.Config.Model.NoBias})
	}
	var part layers.LoadReport
	if err == nil {
		part, err = s.model.Load(s.FS, p, nil)
	}
	if err != nil {
		return err
	}
	loaded.Unused = slices.DeleteFunc(loaded.Unused, func(name string) bool { return !slices.Contains(part.Unused, name) })
	for _, theirs := range p.All() {
		ours := m.Params.Get(theirs.Name)
		width := theirs.Value.Shape().TotalSize() / len(s.model.Labels)
		for id, place := range places {
			copy(ours.Value.Float32s()[id*width:][:width], theirs.Value.Float32s()[place*width:])
		}
		loaded.Kept = slices.DeleteFunc(loaded.Kept, func(name string) bool { return name == theirs.Name })
	}
	return nil
}

// withoutUnknownTag returns the tags that a published model can have, and the parameters without the unknown tag, which
// is the last.
func (m *Model) withoutUnknownTag() (tags []string, p *layers.Params, err error) {
	target := m.Config.Task.Target
	for id := range target.Len() - 1 {
		tag, err := target.Decode([]int{id})
		if err != nil {
			return nil, nil, err
		}
		tags = append(tags, tag)
	}
	if p, err = layers.NewParams(m.Params.Dtype(), 0); err != nil {
		return nil, nil, err
	}
	for _, q := range m.Params.All() {
		shape := slices.Clone(q.Value.Shape())
		if strings.HasPrefix(q.Name, "head.") {
			shape[0] = len(tags)
		}
		same, err := p.Blank().New(q.Name, layers.Init{}, shape...)
		if err != nil {
			return nil, nil, err
		}
		if n := same.Value.Shape().TotalSize(); copy(same.Value.Float32s(), q.Value.Float32s()) < n {
			return nil, nil, fmt.Errorf("parameter %q has only int8 values: open the model with float32 weights", q.Name)
		}
	}
	return tags, p, nil
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
