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

	Unit  string // what Score counts, such as "tags"
	Right string // what a good one is, such as "exactly right"

	aligned   bool            // each symbol of a source has one in the answer, which is judged by itself
	causal    bool            // no position sees a later one, so that rows need no lengths and the last position answers
	units     string          // which units the symbols of a file may have
	usual     tokenizer.Units // the units by default; if empty, New guesses
	maxLen    int             // the MaxLen of the task that learns a file; 0 if the file decides it
	smoothing float64         // the LabelSmoothing that rows of a file are learned well with
}

// A kind is a kind of task. Its file has whatever no other kind does. A kind embeds common, and so writes only the
// methods in which it differs.
type kind interface {
	about() Kind
	defaults(c *Config)                // sets what a rule is learned well with
	rows(c *Config, s *rowSet) error   // sets what the rows of a file decide
	network(m *Model) (forward, error) // makes the layers

	// score adds an answer and the right ones, as symbols, to a report.
	score(r *Report, j *Judged, answer []string, references [][]string)
	write(r *Report, w io.Writer) // writes the scores in words
}

var kinds = []kind{textKind, seq2seqKind, classificationKind, taggingKind}

// kindOf returns the kind of a name, or one that has no name and does nothing.
func kindOf(name data.Kind) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.about().Name == name })
	if i < 0 {
		return common{}
	}
	return kinds[i]
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

// common is a Kind with what most kinds do.
type common struct{ Kind }

func (k common) about() Kind               { return k.Kind }
func (common) defaults(*Config)            {}
func (common) rows(*Config, *rowSet) error { return nil }
func (common) write(*Report, io.Writer)    {}

func (common) network(*Model) (forward, error) { return nil, errors.New("the task has no kind") }

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
