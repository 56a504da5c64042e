package task

import (
	"cmp"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear/fit"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train"
)

// A rowSet is a set of rows from a file.
type rowSet struct {
	*rows.Set
	coder        data.Coder
	classWeights []float64
	total        int // number of validation rows or, for tagging, of their tags
	batch        int // number of rows in a validation batch

	// Set by countClasses: the labels or tags, their numbers in the validation rows, and the index of the most frequent
	// one in the training rows.
	names     []string
	validates []int
	best      int
}

// format describes the rows of the task's files.
func (c *Config) format() rows.Format {
	implementation := kindOf(c.Task.Kind)
	k := implementation.about()
	return rows.Format{
		Columns: c.columns(), Tagged: c.tagged(), Check: implementation.row(c),
		Labels: k.Classes && !k.AnswerUnits, AnswerUnits: k.AnswerUnits, Sequences: k.Sequences, Aligned: k.Aligned, Usual: k.usual,
		Texts: c.Task.Texts,
	}
}

// leastRows is the least number of rows, with those for validation, that a task learns from.
const leastRows = 20

// openRows reads the rows of a configuration's files, and completes the configuration.
func openRows(c *Config) (set, error) {
	begins := c.Data.SHA256 == "" // otherwise the configuration is of a run
	if c.Kind().Embeds {
		c.chooseTexts(c.Data.File)
	}
	read, err := rows.Open(&c.Data, c.format(), c.Seed, c.From.Dir)
	if err != nil {
		return nil, err
	}
	s := &rowSet{Set: read}
	kind := kindOf(c.Task.Kind)
	if s.Description.Notes, err = kind.read(c, s.Tables()); err != nil {
		return nil, err
	}
	if err := s.Divide(); err != nil {
		return nil, err
	}
	if err := kind.rows(c, s.Set); err != nil {
		return nil, err
	}
	if err := s.Encode(&c.Task); err != nil {
		return nil, err
	}
	if n := s.Train.Len() + s.Validation.Len(); begins && n < leastRows {
		return nil, setting.Errorf("%s: the rows are too few to learn from and to judge by: training needs at least %d, got %d", setting.Path("data.file"), leastRows, n)
	}
	s.total = s.Validation.Len()
	if c.Kind().Classes {
		s.countClasses(c, begins)
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

// planPass sets the settings that depend on the number of steps of one pass over the file, which is an epoch.
func (c *Config) planPass(steps int) error {
	t := &c.Training
	if t.StepsPerEpoch = cmp.Or(t.StepsPerEpoch, steps); t.StepsPerEpoch != steps {
		return setting.Errorf("%s must be %d, one pass over the file, or 0 to choose it, got %d: to check more often, set %s", setting.Path("training.steps_per_epoch"), steps, t.StepsPerEpoch, setting.Path("training.check_every"))
	}
	if c.Published() && t.MaxEpochs < 0 { // fewer than for a new model
		limit := 20
		t.MaxEpochs = min(max(3, 300/steps), limit)
	}
	t.plan(steps)
	return nil
}

// linearTexts returns the number of texts that the linear model learns: see beside.Texts. If tokens have several
// pieces, it counts the pieces.
func (s *rowSet) linearTexts(c *Config) int {
	if c.Kind().Aligned {
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

func (s *rowSet) judged() int  { return s.total }
func (s *rowSet) close() error { return nil }
