package model

import (
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/score"
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
	Linear      bool // a linear model of words and characters can give the answers, too

	units string // allowed units of the sources and answers of a file
	head  head
}

// A head makes the networks of a kind.
type head interface {
	network(m *Model) (network, error) // makes the layers, with the model's Params
}

var kinds = []Kind{textKind, maskedTextKind, seq2seqKind, classificationKind, taggingKind, regressionKind, embedKind}

// KindOf returns the kind with this name. If there is none, it returns a Kind without a name.
func KindOf(name data.Kind) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}

// Kind returns the kind of the configuration's task. Classes and Spans depend on the data: for a rule without a file,
// whole answers are chosen.
func (c *Config) Kind() Kind {
	k := KindOf(c.Task.Kind)
	k.Spans = k.Spans && c.EntityTags() != nil
	if c.Drawn() {
		k.Classes, k.Aligned = c.Task.Classes != nil, false
	}
	return k
}

// EntityTags returns the text of each tag of a file. It returns nil if the tags aren't made for entities: see
// score.Entities.
func (c *Config) EntityTags() []string {
	if !c.FromRows() || c.Task.Target == nil {
		return nil
	}
	tags := make([]string, c.Task.Target.Len())
	var found score.Entities
	for id := range tags {
		tags[id], _ = c.Task.Target.Decode([]int{id})
		if id != c.Task.Target.Unknown() {
			found.Add(nil, tags[id:id+1])
		}
	}
	if found.Others > 0 || found.Total().Rows == 0 {
		return nil
	}
	return tags
}

// head returns what makes the networks of the configuration's kind.
func (c *Config) head() head { return KindOf(c.Task.Kind).head }
