package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train/model"
)

// A kind says what the tasks of one kind learn. It embeds common, and replaces the methods in which it differs. Each
// kind has its own file. Its file in package model says how the model answers, and its file in package judge how the
// answers are judged.
type kind interface {
	about() facts
	defaults(c *Config)                // changes the default settings for this kind
	check(c *Config) error             // returns an error if a setting makes no sense for this kind
	rows(c *Config, s *rows.Set) error // completes the rule from the rows of a file, which are divided but not encoded yet

	// columns describes the columns of the task's files. The function look completes the rule from the columns of a
	// file, before they are described.
	columns(c *Config) []table.Column
	look(c *Config, file string)

	// row returns a function that returns an error if the fields of a row are bad. It may return nil.
	row(c *Config) func(fields []string) error

	// read checks and changes tables of rows right after reading them. It returns notes for the description of the
	// data, each as "name: text".
	read(c *Config, tables []*table.Table) (notes []string, err error)

	// learner returns what a model's network learns. The weights are those of classes: see labelLearner.
	learner(m *model.Model, c *Config, weights []float64) learner
}

// named lists choices by name, each with a line of help.
type named = choices.Table[struct{}]

// facts are what a kind is like, whatever the configuration.
type facts struct {
	name      data.Kind    // also the name of the task that learns from a file
	help      string       // description of this task
	format    *rows.Format // form of a file's rows, with the column of sources and the column of answers; nil for a text
	pairs     bool         // with a third column, a source is two texts
	classes   bool         // an answer is one class, or one class per symbol
	symbols   bool         // each symbol of a text or of a file's answers is judged alone
	together  bool         // all validation rows are judged together, too
	linear    linearKind   // what a linear model of words and characters learns; nil if there is none
	maxLen    int          // default MaxLen of the task that learns from a file; 0 if the file decides
	learns    string       // what the kind learns in place of classes, for errors; "" for classes
	losses    named        // what Training.Loss may be, the default first; nil if there is no choice
	smoothing float64      // default LabelSmoothing for rows of a file
	rate      float64      // default LearningRate for rows of a file; 0 for 0.001
	micro     int          // default MicroBatches; 0 if New decides

	// Whether the embeddings of a new model for rows of a file begin as small as in BERT and GPT-2. Large embeddings of
	// rare words hardly move, but are better for what a model copies: docs/results.md compares them.
	small bool

	// Defaults for training a published model: the learning rate of all its weights, if it isn't the one that fineTune
	// chooses, and the batch size.
	fineRate  float64
	fineBatch int
}

// textColumn is the column of sources that are texts.
var textColumn = table.Column{Role: "text", Names: []string{"text", "source", "input", "sentence", "review", "message"}}

// common has the methods that most kinds use.
type common struct{ facts }

func (k common) about() facts                { return k.facts }
func (common) defaults(*Config)              {}
func (common) rows(*Config, *rows.Set) error { return nil }

// check returns an error if only other kinds may have a setting.
func (k common) check(c *Config) error {
	switch {
	case c.Training.Temperature != 0 && k.name != data.KindEmbed:
		return setting.Errorf("%s is for the task %s, not for %s", setting.Path("training.temperature"), data.KindEmbed, c.Task.Name)
	case c.Training.LabelSmoothing != 0 && k.learns != "":
		return setting.Errorf("%s is for classes: the task %s learns %s", setting.Path("training.label_smoothing"), c.Task.Name, k.learns)
	}
	return nil
}

func (k common) columns(c *Config) []table.Column {
	if k.format == nil {
		return nil
	}
	if !c.Task.Pairs {
		return k.format.Columns
	}
	return []table.Column{
		{Role: "first text", Names: []string{"text1", "first", "sentence1", "question1", "premise", "question", "query"}},
		{Role: "second text", Names: []string{"text2", "second", "sentence2", "question2", "hypothesis", "answer", "document", "passage"}},
		k.format.Columns[1],
	}
}

// look makes a source of two texts if the file has the usual names of both, and none of a single text. Files of a run
// have the run's columns.
func (k common) look(c *Config, file string) {
	if !k.pairs || c.Task.Pairs || c.Data.Columns != nil || c.Data.SHA256 != "" || c.Data.TargetFile != "" {
		return
	}
	pair := *c
	pair.Task.Pairs = true
	columns := k.columns(&pair)
	head := table.Head(file, table.Options{Encoding: c.Data.Encoding, Header: c.Data.Header, Quotes: c.Data.Quotes, Known: columns})
	names := append(head, nil)[0]
	c.Task.Pairs = textColumn.Index(names) < 0 && columns[0].Index(names) >= 0 && columns[1].Index(names) >= 0
}

func (common) row(*Config) func(fields []string) error { return nil }

func (common) read(*Config, []*table.Table) ([]string, error) { return nil, nil }

func (k common) learner(m *model.Model, c *Config, weights []float64) learner {
	return k.labels(m, c, weights)
}

// labels returns a learner of labels, symbols or sequences.
func (k common) labels(m *model.Model, c *Config, weights []float64) labelLearner {
	return labelLearner{m, c, weights, !k.symbols || c.Drawn(), nil}
}
