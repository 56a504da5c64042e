package task

import (
	"errors"
	"io"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
)

// A Kind describes the tasks of one kind: what their models can do, and the words for their results.
type Kind struct {
	Name  data.Kind // also names the task that learns a file
	About string    // what such a task learns

	// Columns has the names that a header may give to the column of sources, and to the column of answers. It is nil
	// for a kind that learns a text instead of rows.
	Columns [][]string

	Generates   bool // Model.Generate writes on from a prompt
	Beams       bool // PredictOptions may have a Beam
	Classes     bool // answers are classes, which are counted one by one
	Sequences   bool // answers have any length up to MaxAnswer; several may be right, and edits tell how wrong one is
	AnswerUnits bool // answers are made of symbols, of the units Data.TargetUnits

	Unit  string // the word for what a Score counts, such as "tags"
	Right string // the word for a good one, such as "exactly right"

	aligned   bool            // each symbol of a source has one in the answer, which is judged by itself
	causal    bool            // no position sees a later one: rows need no lengths, and the last position answers
	units     string          // the units that sources and answers of a file may have
	usual     tokenizer.Units // the units by default; if empty, New guesses
	maxLen    int             // the MaxLen of the task that learns a file; 0 if the file decides it
	smoothing float64         // the LabelSmoothing that rows of a file are learned well with
}

// A kind is the code of a Kind, in a file of its own. It embeds common, and replaces the methods in which it differs.
type kind interface {
	about() Kind
	defaults(c *Config)                // changes the settings that other kinds learn a rule with
	rows(c *Config, s *rowSet) error   // completes the rule by the rows of a file
	network(m *Model) (forward, error) // makes the layers, in the model's Params

	// score adds an answer and the right ones, as symbols, to a report.
	score(r *Report, j *Judged, answer []string, references [][]string)
	write(r *Report, w io.Writer) // writes the scores in words
}

var everyKind = []kind{textKind, seq2seqKind, classificationKind, taggingKind}

// kindOf returns the kind with a name. If there is none, the result has no name and does nothing.
func kindOf(name data.Kind) kind {
	i := slices.IndexFunc(everyKind, func(k kind) bool { return k.about().Name == name })
	if i < 0 {
		return common{}
	}
	return everyKind[i]
}

// Kind returns the kind of the configuration's task. Its words and Classes depend on the data: the answers to a rule's
// examples count as wholes, and a text may be of tokens.
func (c *Config) Kind() Kind {
	k := kindOf(c.Task.Kind).about()
	switch {
	case c.Data.File == "":
		k.Unit, k.Right, k.Classes, k.aligned = "sequences", "exactly right", c.Task.Classes != nil, false
	case k.Columns == nil && c.Task.Source != nil:
		k.Unit = "tokens"
	}
	return k
}

// common has the methods that most kinds share.
type common struct{ Kind }

func (k common) about() Kind               { return k.Kind }
func (common) defaults(*Config)            {}
func (common) rows(*Config, *rowSet) error { return nil }

func (common) network(*Model) (forward, error) { return nil, errors.New("the task has no kind") }
func (k common) write(r *Report, w io.Writer)  { r.writeClasses(w, k.Unit) }

// score counts the class of each symbol.
func (common) score(r *Report, j *Judged, answer []string, references [][]string) {
	for i, symbol := range references[0] {
		got := ""
		if i < len(answer) {
			got = answer[i]
		}
		if r.Classes.Add(got, symbol); got != symbol {
			j.Edits++
		}
	}
}
