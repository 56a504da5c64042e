package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/linear/fit"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train"
)

// rowSource has the rows of a file.
var rowSource = source{(*Config).FromRows, openRows}

// A rowSet is a set of rows from a file.
type rowSet struct {
	bare
	*rows.Set
	coder  data.Coder
	labels *labelCounts // nil unless answers are classes
	batch  int          // number of rows in a validation batch
}

// format describes the rows of the task's files. If they are tokens with their tags, a file may be CoNLL.
func (c *Config) format(k kind) rows.Format {
	f := *k.about().format
	f.Columns, f.Check, f.Texts, f.Starts = k.columns(c), k.row(c), c.Task.Texts, c.Task.Starts
	f.Spaces = c.Task.Published.Tabs && k.about().pairs
	f.Tagged = f.Aligned && (c.FromRows() || c.Opened()) && c.Data.SourceUnits != tokenizer.Characters && c.Data.TargetUnits != tokenizer.Characters
	return f
}

// leastRows is the least number of rows, with those for validation, that a task learns from.
const leastRows = 20

// openRows reads the rows of a configuration's files, and completes the configuration.
func openRows(k kind, c *Config) (set, error) {
	begins := c.Data.SHA256 == "" // otherwise the configuration is of a run
	k.look(c, c.Data.File)
	read, err := rows.Open(&c.Data, c.format(k), c.Seed, c.From.Dir)
	if err != nil {
		return nil, err
	}
	s := &rowSet{Set: read}
	if s.Description.Notes, err = k.read(c, s.Tables()); err != nil {
		return nil, err
	}
	if err := s.Divide(); err != nil {
		return nil, err
	}
	if err := k.rows(c, s.Set); err != nil {
		return nil, err
	}
	if err := s.Encode(&c.Task); err != nil {
		return nil, err
	}
	if n := s.Train.Len() + s.Validation.Len(); begins && n < leastRows {
		return nil, setting.Errorf("%s: the rows are too few to learn from and to judge by: training needs at least %d, got %d", setting.Path("data.file"), leastRows, n)
	}
	if k.about().classes {
		s.labels = countLabels(k.about(), c, s.Set, begins)
	}
	return s, s.complete(c)
}

// complete sets the settings that depend on the rows, unless they are already set.
func (s *rowSet) complete(c *Config) error {
	var err error
	if s.coder, err = data.NewCoder(c.Task); err != nil {
		return setting.As(err)
	}
	if c.Data.Tokenizers, err = c.TokenizerSums(); err != nil {
		return err
	}
	c.fill(s.Train.Len(), s.Symbols)
	width := 0
	if c.From.Dir != "" {
		width = c.Model.Dim
	}
	c.Mix = c.Mix && fit.Feasible(s.linearTexts(c), width, s.coder.Layout().Classes)
	s.batch = c.Training.BatchSize
	return c.planPass(s.Batches(s.batch))
}

// linearTexts returns the number of texts that the linear model learns: see beside.Texts. If tokens have several
// pieces, it counts the pieces.
func (s *rowSet) linearTexts(c *Config) int {
	if kindOf(c.Task.Kind).about().symbols {
		return s.Symbols
	}
	return s.Train.Len()
}

func (s *rowSet) train(c Training) examples {
	return s.examples(s.Train, train.Shuffled, c.BatchSize/max(1, c.MicroBatches))
}

func (s *rowSet) validation() examples { return s.examples(s.Validation, train.InOrder, s.batch) }

func (s *rowSet) examples(part rows.Part, order train.Order, size int) examples {
	return examples{n: part.Len(), order: order, bucket: part.Bucket, batch: func(numbers []int) (data.Batch, error) {
		return s.Batch(s.coder, part, numbers, size)
	}}
}

func (s *rowSet) size() int            { return s.batch }
func (s *rowSet) counts() *labelCounts { return s.labels }
func (s *rowSet) held() []data.Example { return s.Held.Examples() }
func (s *rowSet) describe() string     { return s.Description.String() }

func (s *rowSet) judged() int {
	if s.labels != nil {
		return s.labels.total
	}
	return s.Validation.Len()
}
