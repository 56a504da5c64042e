package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/layers/pretrained"
)

// sequenceHead writes answers symbol by symbol.
type sequenceHead struct{ bare }

func (sequenceHead) about() facts {
	return facts{kind: data.KindSeq2Seq, use: "predict", rows: true, decoder: true, top: MaxBeam, units: "characters, tokens, words, bpe", answers: "characters, tokens, bpe"}
}

// suit only accepts a model that writes answers: others have no decoder that reads a source.
func (sequenceHead) suit(m *pretrained.Config) error {
	if m.Head != "sequence" {
		return fmt.Errorf("a task of kind %s can start from a published model with an encoder and a decoder, such as t5, not from %s", data.KindSeq2Seq, m.Type)
	}
	return nil
}

func (sequenceHead) published(m *pretrained.Config, r *data.Rule) bool {
	if m.Head != "sequence" {
		return false
	}
	r.About, r.MaxLen = "an answer to a text, such as a translation", min(r.MaxLen, Longest)
	r.MaxAnswer = min(cmp.Or(m.Search.MaxTokens, max(0, m.AnswerLen-1), usualAnswer), r.MaxLen)
	r.Published.Start, r.Published.MaxLen = m.AnswerStart, r.MaxLen
	if pair := m.Sequence; pair != nil && !pair.Shared {
		r.Published.Targets = cmp.Or(pair.TargetVocab, m.Model.Vocab)
	}
	return true
}

// usualAnswer is the greatest number of tokens of an answer if a published folder doesn't say it.
const usualAnswer = 512

func (sequenceHead) network(m *Model) (network, error) {
	c := layers.EncoderDecoderConfig{Model: m.Config.Model, TargetVocab: m.layout.TargetTokens, DecoderLayers: m.Config.DecoderLayers}
	if rule := &m.Config.Task; m.Config.Published() {
		c.Shared = rule.Published.Targets == 0
	} else {
		c.Shared = rule.Source != nil && rule.Target == nil // one vocabulary
		c.Model.Tied = c.Model.Tied || c.Shared
	}
	net, err := layers.NewEncoderDecoder(m.Params, c)
	return translator{newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], inputs[2], layers.Mask{KeyLengths: inputs[1]}) // (B, TargetLen, Classes)
	}), net}, err
}

// A translator is the network of seq2seq.
type translator struct {
	classifier
	net *layers.EncoderDecoder
}

// search returns how the model searches for answers. An answer ends before the first special token, or at its greatest
// length, or as the published model says.
func (t translator) search(beam int) decode.BeamOptions {
	l := t.layout
	o := decode.BeamOptions{End: []int{l.End, l.TargetPad, l.Start}}
	if t.published != nil {
		c := &t.published.model
		o = c.Search
		o.End, o.RepetitionPenalty, o.MinTokens = c.End, c.Sampler.RepetitionPenalty, max(o.MinTokens, c.MinLen-1)
		if beam == 1 { // which is greedy
			o.Ends = decode.EndFull
		}
	}
	o.Width, o.MaxTokens = beam, l.TargetLen
	return o
}

// predictor returns a predictor that generates answers.
func (t translator) predictor(s batchShape) (predictor, error) {
	l := t.layout
	session, err := decode.NewSeq2Seq(t.net, decode.Seq2SeqConfig{Sources: s.size, Width: s.beam, SourceLen: s.width, Capacity: l.TargetLen, Cores: s.cores, Adapter: t.adapter})
	if err != nil {
		return nil, err
	}
	o, longest := t.search(s.beam), l.TargetLen
	if t.published == nil { // of this, the end is a part
		longest--
	}
	return func(ctx context.Context, rows []query) error {
		sources, starts := make([][]int, len(rows)), make([][]int, len(rows))
		for i, q := range rows {
			sources[i], starts[i] = q.ids, []int{l.Start}
		}
		if err := session.Read(sources); err != nil {
			return err
		}
		found, err := decode.Beam(ctx, session, starts, o)
		if err != nil {
			return err
		}
		for i := range rows {
			for _, h := range found[i] {
				rows[i].choices = append(rows[i].choices, choice{targets: h.Tokens[:min(len(h.Tokens), longest)], logProb: h.LogProb})
			}
		}
		return nil
	}, nil
}

// SetLanguages chooses the languages of the texts and of the answers of a published model that knows several, by codes
// such as en_XX or fra. With an empty code, the language stays as the folder says. SetLanguages returns a *ConfigError
// if the model doesn't know a language. Don't call it at the same time as other methods.
func (m *Model) SetLanguages(source, target string) error {
	rule := m.Config.Task
	texts, _ := rule.Source.(*tokenizer.Pipeline)
	answers, ok := rule.Target.(*tokenizer.Pipeline)
	codes := []string(nil)
	if ok = ok && m.published != nil; ok {
		codes = answers.Languages()
	}
	if len(codes) == 0 && source+target != "" {
		return setting.Errorf("%s and %s are for published models that know several languages, not for the task %s", setting.Path("source_language"), setting.Path("target_language"), m.Config.taskName())
	}
	var err error
	if code := ">>" + target + "<<"; slices.Contains(codes, code) { // which begins a text
		m.language, target = code+" ", ""
	}
	if source != "" {
		if texts, err = texts.WithLanguage(source); err != nil {
			return setting.Errorf("%s: %w", setting.Path("source_language"), err)
		}
		rule.Source = texts
	}
	if target != "" {
		if answers, err = answers.WithLanguage(target); err != nil {
			return setting.Errorf("%s: %w", setting.Path("target_language"), err)
		}
		rule.Target = answers
		s, id := &m.published.model, answers.Special()[target]
		if input, err := answers.Input(""); err == nil && input.Tokens[0].ID != id { // the code ends an answer, and comes before the next one
			s.AnswerStart, rule.Published.Start = id, id
		} else {
			s.Search.ForceFirst = []int{id}
		}
	}
	return m.setRule(rule)
}

// setRule replaces the rule of an opened model.
func (m *Model) setRule(rule data.Rule) error {
	coder, err := data.NewCoder(rule)
	if err != nil {
		return setting.As(err)
	}
	m.Coder, m.Config.Task, m.layout = coder, rule, coder.Layout()
	return nil
}
