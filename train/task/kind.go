package task

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train/model"
)

// A Kind describes the tasks of one kind: what their models can do, and the words for their results.
type Kind struct {
	model.Kind
	About string // description of this task

	Unit  string // plural noun for what a Score counts, such as "tags"
	Right string // word for a right answer, such as "exactly right"; empty if answers are near or far, not right or wrong

	Score         string // name of the metric that says how good a model is, such as "accuracy"
	Share         bool   // the score is a share of right answers
	LowerIsBetter bool   // for the score

	LossUnit string // such as "nats"; empty if the loss has none

	columns   []table.Column  // the column of sources and the column of answers; nil without Rows
	linear    linearKind      // what a linear model of words and characters learns; nil if there is none
	usual     tokenizer.Units // default units; if empty, New guesses
	maxLen    int             // default MaxLen of the task that learns from a file; 0 if the file decides
	losses    named           // what Training.Loss may be, the default first; nil if there is no choice
	smoothing float64         // default LabelSmoothing for rows of a file
}

// A kind implements one Kind. It embeds common, and replaces the methods in which it differs. Each kind has its own
// file.
type kind interface {
	about() Kind
	defaults(c *Config)                // changes the default settings for this kind
	check(c *Config) error             // returns an error if a setting makes no sense for this kind
	rows(c *Config, s *rows.Set) error // completes the rule from the rows of a file, which are divided but not encoded yet

	// row returns a function that returns an error if the fields of a row are bad. It may return nil.
	row(c *Config) func(fields []string) error

	// read checks and changes tables of rows right after reading them. It returns notes for the description of the
	// data, each as "name: text".
	read(c *Config, tables []*table.Table) (notes []string, err error)

	// learner returns what the task's network learns.
	learner(t *Task) learner

	// metrics lists the metrics of the network's loss. The first is the kind's score. Before New has read the rows of a
	// file, it lists the metrics that the task may have.
	metrics(c *Config) metrics

	values(r *Report) map[string]float64 // the values of a report, by the names of the kind's metrics

	judge(m *model.Model, r *Report, j *Judged) // compares an answer with its references and adds it to a report
	write(r *Report, w io.Writer)               // writes the scores of a report in words
	scores(r *Report, s *Scores)                // sets the scores of a report
	details(j Judged) (names, values []string)  // what Report.WriteAnswers writes between an answer and its references
}

var everyKind = []kind{textKind, maskedTextKind, seq2seqKind, classificationKind, taggingKind, regressionKind, embedKind}

// kindOf returns the kind with this name. If there is none, it returns a kind without a name, which does nothing.
func kindOf(name data.Kind) kind {
	i := slices.IndexFunc(everyKind, func(k kind) bool { return k.about().Name == name })
	if i < 0 {
		return common{}
	}
	return everyKind[i]
}

// Kind returns the kind of the configuration's task. Its words depend on the data: for a rule without a file, whole
// answers are counted, and for text in byte pairs, tokens are counted.
func (c *Config) Kind() Kind {
	implementation := kindOf(c.Task.Kind)
	k := implementation.about()
	if k.Name != "" {
		score := implementation.metrics(c)[0]
		k.Score, k.Share, k.LowerIsBetter = score.Name, score.Value.share, score.Value.lower
	}
	k.Kind = c.Config.Kind()
	switch {
	case c.Drawn():
		k.Unit = "sequences"
		if k.Right != "" {
			k.Right = "exactly right"
		}
	case !k.Rows && c.Task.Source != nil:
		k.Unit = strings.Replace(k.Unit, "characters", "tokens", 1)
	}
	return k
}

// textColumn is the column of sources that are texts.
var textColumn = table.Column{Role: "text", Names: []string{"text", "source", "input", "sentence", "review", "message"}}

// columns describes the columns of the task's files.
func (c *Config) columns() []table.Column {
	k := kindOf(c.Task.Kind).about()
	if k.Embeds {
		return c.textColumns()
	}
	if !k.Pairs || !c.Task.Pairs {
		return k.columns
	}
	return []table.Column{
		{Role: "first text", Names: []string{"text1", "first", "sentence1", "question1", "premise", "question"}},
		{Role: "second text", Names: []string{"text2", "second", "sentence2", "question2", "hypothesis", "answer"}},
		k.columns[1],
	}
}

// common has the methods that most kinds use.
type common struct{ Kind }

func (k common) about() Kind                 { return k.Kind }
func (common) defaults(*Config)              {}
func (common) check(*Config) error           { return nil }
func (common) rows(*Config, *rows.Set) error { return nil }

func (common) row(*Config) func(fields []string) error { return nil }

func (common) read(*Config, []*table.Table) ([]string, error) { return nil, nil }

func (common) learner(t *Task) learner        { return labelLearner{t, nil} }
func (common) metrics(*Config) metrics        { return metrics{accuracy} }
func (k common) write(r *Report, w io.Writer) { r.writeClasses(w, k.Unit) }
func (common) scores(r *Report, s *Scores)    { r.classScores(s) }

func (common) values(r *Report) map[string]float64 {
	return map[string]float64{"accuracy": r.Classes.Accuracy(), "macro_f1": r.Classes.Macro().F1}
}

// judge counts right and wrong answers per class.
func (common) judge(m *model.Model, r *Report, j *Judged) {
	answer, references := r.compare(m, j)
	r.countClasses(j, answer, references[0])
}

// details returns whether the answer is right, its edits and its log probability.
func (common) details(j Judged) (names, values []string) {
	logProb := ""
	if j.Answer.Err == nil {
		logProb = fmt.Sprintf("%.4f", math.Round(1e4*j.Answer.LogProb)/1e4+0) // never -0.0000
	}
	return []string{"right", "edits", "log_prob"}, []string{strconv.FormatBool(j.Right), strconv.Itoa(j.Edits), logProb}
}
