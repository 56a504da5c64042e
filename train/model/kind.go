package model

import (
	"slices"

	"github.com/heed-go/heed/data"
)

// A Kind says what the models of a kind of task can do.
type Kind struct {
	Name data.Kind // also the name of the task that learns from a file

	Rows  bool // the task learns from the rows of a file; otherwise it learns from a text
	Pairs bool // with a third column, the task learns two texts per row: see data.Rule.Pairs

	Generates   bool // Model.Generate continues a prompt
	Embeds      bool // Model.Embed makes vectors of texts; there are no answers
	Masks       bool // an input has masks, which an answer fills; Model.Embed makes vectors of texts, too
	Beams       bool // PredictOptions may set Beam above 1
	Classes     bool // an answer is one class, or one class per symbol
	Sequences   bool // an answer may have any length up to MaxAnswer; a source may have several right answers
	AnswerUnits bool // an answer is split into the units Data.TargetUnits
	Spans       bool // answers have Answer.Spans, because their tags mark entities
	Numbers     bool // an answer is a number: see Answer.Number
	Aligned     bool // each symbol of a source has one symbol in the answer
	Causal      bool // no position sees a later one: batches have no lengths, and the last position gives the answer
	Linear      bool // a linear model beside the network can give the answers, too

	units string // allowed units of the sources and answers of a file
}

var kinds = []Kind{
	{Name: data.KindText, Generates: true, Aligned: true, Causal: true, units: "characters, bpe"},
	{Name: data.KindMaskedText, Masks: true, Aligned: true, units: "characters, bpe"},
	{Name: data.KindSeq2Seq, Rows: true, Beams: true, Sequences: true, AnswerUnits: true, units: "characters, tokens, words, bpe"},
	{Name: data.KindClassification, Rows: true, Pairs: true, Classes: true, Linear: true, units: "characters, tokens, words, bpe"},
	{
		Name: data.KindTagging, Rows: true, Classes: true, Linear: true, AnswerUnits: true, Spans: true, Aligned: true,
		units: "characters, tokens, words", // no byte pairs: only a part of a word would have the tag
	},
	{Name: data.KindRegression, Rows: true, Pairs: true, Numbers: true, Linear: true, units: "characters, tokens, words, bpe"},
	{Name: data.KindEmbed, Rows: true, Embeds: true, units: "characters, tokens, words, bpe"},
}

// KindOf returns the kind with this name. If there is none, it returns a Kind without a name.
func KindOf(name data.Kind) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}
