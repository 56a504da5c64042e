package task

import (
	"errors"
	"io"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/table"
)

// A Kind describes the tasks of one kind: what their models can do, and the words for their results.
type Kind struct {
	Name  data.Kind // also the name of the task that learns from a file
	About string    // description of this task

	// Columns describes the column of sources and the column of answers. It is nil for the kind text, which doesn't
	// learn from rows.
	Columns []Column

	Generates   bool // Model.Generate continues a prompt
	Beams       bool // PredictOptions may set Beam above 1
	Classes     bool // an answer is one class, or one class per symbol, and results are counted per class
	Sequences   bool // an answer may have any length up to MaxAnswer; a source may have several right answers; errors are counted as edits
	AnswerUnits bool // an answer is split into the units Data.TargetUnits

	Unit  string // plural noun for what a Score counts, such as "tags"
	Right string // word for a right answer, such as "exactly right"

	aligned   bool            // each symbol of a source has one symbol in the answer, and each of these is scored
	causal    bool            // no position sees a later one: batches have no lengths, and the last position gives the answer
	units     string          // allowed units of the sources and answers of a file
	usual     tokenizer.Units // default units; if empty, New guesses
	maxLen    int             // default MaxLen of the task that learns from a file; 0 if the file decides
	smoothing float64         // default LabelSmoothing for rows of a file
}

// A Column is a column of a file of rows. Its Role is a noun for its fields, such as "label". Its Names are the usual
// names in a header.
type Column = table.Column

// A kind implements one Kind. It embeds common, and replaces the methods in which it differs. Each kind has its own
// file.
type kind interface {
	about() Kind
	defaults(c *Config)              // changes the default settings for this kind
	rows(c *Config, s *rowSet) error // completes the rule from the rows of a file

	// read checks and changes tables of rows right after reading them, and adds to the description what it finds.
	read(c *Config, d *dataDescription, tables []*table.Table) error

	network(m *Model) (forward, error) // makes the layers, with the model's Params

	// score adds an answer to a report. The answer and the references, which are right, are split into symbols.
	score(r *Report, j *Judged, answer []string, references [][]string)
	write(r *Report, w io.Writer) // writes the scores in words
}

var everyKind = []kind{textKind, seq2seqKind, classificationKind, taggingKind}

// kindOf returns the kind with this name. If there is none, it returns a kind without a name, which does nothing.
func kindOf(name data.Kind) kind {
	i := slices.IndexFunc(everyKind, func(k kind) bool { return k.about().Name == name })
	if i < 0 {
		return common{}
	}
	return everyKind[i]
}

// Kind returns the kind of the configuration's task. Its words and Classes depend on the data: for a rule without a
// file, whole answers are counted, and for text in byte pairs, tokens are counted.
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

// common has the methods that most kinds use.
type common struct{ Kind }

func (k common) about() Kind               { return k.Kind }
func (common) defaults(*Config)            {}
func (common) rows(*Config, *rowSet) error { return nil }

func (common) read(*Config, *dataDescription, []*table.Table) error { return nil }

func (common) network(*Model) (forward, error) { return nil, errors.New("the task has no kind") }
func (k common) write(r *Report, w io.Writer)  { r.writeClasses(w, k.Unit) }

// score counts right and wrong answers per class.
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
