package task

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train"
)

// A rowSet is a set of rows from a file. It keeps their text, and encodes rows only for the batches that need them.
type rowSet struct {
	coder        data.Coder
	trains       rows
	validates    rows
	held         rows     // validation rows, including rows that are too long
	widths       [][2]int // Len and TargetLen of each bucket's batches
	classWeights []float64
	description  *dataDescription
	symbols      int // number of symbols in all training rows
	total        int // number of validation rows or, for tagging, of their tags
	batch        int // number of rows in a validation batch
}

// rows are some rows of a table.
type rows struct {
	table  *table.Table
	number []int32 // index in the table of each row
	bucket []uint8
}

func (r rows) example(i int) data.Example {
	n := int(r.number[i])
	return data.Example{Source: r.table.Field(n, 0), Answer: r.table.Field(n, 1)}
}

// column yields the texts of one column.
func (r rows) column(column int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, n := range r.number {
			if !yield(r.table.Field(int(n), column)) {
				return
			}
		}
	}
}

// all yields the texts of both columns.
func (r rows) all(yield func(string) bool) {
	for column := range 2 {
		for text := range r.column(column) {
			if !yield(text) {
				return
			}
		}
	}
}

// openRows reads the rows of a configuration's files, and completes the configuration.
func openRows(c *Config) (set, error) {
	s := &rowSet{description: &dataDescription{File: c.Data.File, kind: c.Kind(), seed: c.Seed, from: c.From.Dir != ""}}
	t, err := readRows(c, trainBytes, c.Data.File, c.Data.TargetFile, &c.Data.SHA256)
	if err != nil {
		return nil, err
	}
	if t.Keyed && c.Data.Header != "" {
		return nil, setting.Errorf("data file %q is JSONL or CoNLL, which has no header: leave out %s", t.Name, setting.Path("data.header"))
	}
	tables := []*table.Table{t}
	s.trains.table, s.validates.table = t, t
	if c.Data.ValidationFile != "" && c.Data.Validation != 0 {
		if s.validates.table, err = readRows(c, trainBytes, c.Data.ValidationFile, c.Data.ValidationTargetFile, &c.Data.ValidationSHA256); err != nil {
			return nil, err
		}
		tables = append(tables, s.validates.table)
		s.description.Validation = c.Data.ValidationFile
	}
	if err := kindOf(c.Task.Kind).read(c, s.description, tables); err != nil {
		return nil, err
	}
	for _, t := range tables {
		s.description.bad(t)
	}
	s.description.rows(t)
	if c.Data.TargetFile != "" {
		s.description.Columns = fmt.Sprintf("the lines of this file and of %s", c.Data.TargetFile)
	}
	switch n := &c.Data.Validation; {
	case *n < 0 && c.Data.ValidationFile != "":
		*n = min(s.validates.table.Len(), mostValidation)
	case *n < 0:
		*n = 1000
	}
	if err := s.divide(c); err != nil {
		return nil, err
	}
	if err := s.tokenize(c); err != nil {
		return nil, err
	}
	if err := s.measure(c); err != nil {
		return nil, err
	}
	return s, s.complete(c)
}

// trainBytes is the approximate memory per row of a rowSet and of training, beside the table.
const trainBytes = 56

// readRows reads a file of rows, or the lines of two parallel files. The caller will need rowBytes of memory per row,
// beside the table. If *sum is empty, readRows sets *sum to the checksum; otherwise the checksum must equal *sum.
func readRows(c *Config, rowBytes int, path, targets string, sum *string) (*table.Table, error) {
	known := c.columns()
	o := table.Options{
		Columns: c.Data.Columns, Known: known, Join: len(known) == 3, Header: c.Data.Header, SkipBad: c.Data.SkipBad,
		Encoding: c.Data.Encoding, Tagged: c.tagged(), RowBytes: rowBytes, Check: kindOf(c.Task.Kind).row(c),
	}
	var t *table.Table
	var err error
	if targets != "" {
		t, err = table.ReadParallel([]string{path, targets}, o)
	} else {
		t, err = table.Read(path, o)
	}
	if err != nil {
		return nil, err
	}
	found := strings.Join(t.SHA256, " ")
	if *sum = cmp.Or(*sum, found); *sum != found {
		return nil, fmt.Errorf("data file %q has changed since the run began: restore it", path)
	}
	return t, nil
}

// divide splits the rows into training and validation rows. Without a validation file, it holds out the rows of some
// sources.
func (s *rowSet) divide(c *Config) error {
	table := s.trains.table
	sources := s.description.Sources
	held := make([]bool, table.Len())
	if c.Data.ValidationFile == "" && c.Data.Validation > 0 {
		if sources < 2 {
			return setting.Errorf("data file %q has only %d source, and none is left for validation: set %s to a file, or %s to 0", c.Data.File, sources, setting.Path("data.validation_file"), setting.Path("data.validation"))
		}
		// Double the share until at least one row is held out.
		for share, n := min(0.1, float64(c.Data.Validation)/float64(sources)), 0; n == 0; share *= 2 {
			together := map[string]bool{}
			for i := range held {
				if held[i] = data.HeldOut(c.Seed, table.Field(i, 0), share); held[i] {
					n++
					together[table.Field(i, 0)] = true
				}
			}
			s.description.Held = len(together)
			if n == len(held) {
				return setting.Errorf("data file %q has %d sources, and seed %d holds out all of them: set %s to a file, or choose another %s", c.Data.File, sources, c.Seed, setting.Path("data.validation_file"), setting.Path("seed"))
			}
		}
	}
	for i := range held {
		if held[i] {
			s.validates.number = append(s.validates.number, int32(i))
		} else {
			s.trains.number = append(s.trains.number, int32(i))
		}
	}
	if c.Data.ValidationFile != "" && c.Data.Validation > 0 {
		for i := range min(s.validates.table.Len(), c.Data.Validation) {
			s.validates.number = append(s.validates.number, int32(i))
		}
	}
	return nil
}

// complete sets the settings that depend on the rows, unless they are already set.
func (s *rowSet) complete(c *Config) error {
	var err error
	if s.coder, err = data.NewCoder(c.Task); err != nil {
		return asConfigError(err)
	}
	sums, err := tokenizerSums(c.Task)
	if err != nil {
		return err
	}
	c.Data.Tokenizers = sums
	c.Task.Example = s.example()
	c.fill(len(s.trains.number), s.symbols)
	t := &c.Training
	counts := make([]int, len(s.widths))
	for _, b := range s.trains.bucket {
		counts[b]++
	}
	steps := 0
	for _, n := range counts {
		steps += (n + t.BatchSize - 1) / t.BatchSize
	}
	if t.StepsPerEpoch = cmp.Or(t.StepsPerEpoch, steps); t.StepsPerEpoch != steps {
		return setting.Errorf("%s must be %d, one pass over the file, or 0 to choose it, got %d: to check more often, set %s", setting.Path("training.steps_per_epoch"), steps, t.StepsPerEpoch, setting.Path("training.check_every"))
	}
	t.plan(steps)
	s.batch = t.BatchSize
	s.description.Trains, s.description.Validates = len(s.trains.number), len(s.validates.number)
	return nil
}

// example returns a short source that is easy to type, preferably from the validation rows.
func (s *rowSet) example() string {
	for _, r := range []rows{s.validates, s.trains} {
		for source := range r.column(0) {
			if len(source) <= 60 && !strings.HasPrefix(source, "-") && !strings.ContainsFunc(source, func(r rune) bool { return !unicode.IsPrint(r) }) {
				return strings.Clone(source)
			}
		}
	}
	return "TEXT"
}

func (s *rowSet) train(c Training) examples {
	return s.examples(s.trains, train.Shuffled, c.BatchSize/max(1, c.MicroBatches))
}

func (s *rowSet) validation() examples { return s.examples(s.validates, train.InOrder, s.batch) }

// examples returns rows in batches. Every batch has size rows, if necessary with padding, so that each bucket needs
// only one graph.
func (s *rowSet) examples(r rows, order train.Order, size int) examples {
	return examples{
		n: len(r.number), order: order,
		bucket: func(i int) int { return int(r.bucket[i]) },
		batch: func(numbers []int) (data.Batch, error) {
			some := make([]data.Example, len(numbers))
			for i, n := range numbers {
				some[i] = r.example(n)
			}
			b, err := s.coder.Batch(some)
			if err != nil {
				return b, err
			}
			w := s.widths[r.bucket[numbers[0]]]
			return b.Resize(s.coder.Layout(), size, w[0], w[1])
		},
	}
}

func (s *rowSet) judged() int  { return s.total }
func (s *rowSet) close() error { return nil }
