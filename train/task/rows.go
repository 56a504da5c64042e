package task

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
)

// A rowSet is rows of a file: pairs, labels or tags. It holds their text, and makes ids of them as they are needed.
type rowSet struct {
	coder        data.Coder
	trains       rows
	validates    rows
	held         rows     // what validates, and what of it is too long for that
	widths       [][2]int // of each bucket: the Len and the TargetLen of its batches
	classWeights []float64
	look         *Look
	symbols      int // of all rows to train on
	total        int // rows to validate on or, of tags, their tags
	batch        int // rows of a batch to validate on
}

// rows are some of a table.
type rows struct {
	table  *data.Table
	number []int32 // in the table
	bucket []uint8
}

func (r rows) example(i int) data.Example {
	n := int(r.number[i])
	return data.Example{Source: r.table.Field(n, 0), Answer: r.table.Field(n, 1)}
}

// known are names that columns have in files of a kind, of sources and of answers.
var known = map[data.Kind][][]string{
	data.KindPairs:  {{"source", "src", "input", "word", "question"}, {"target", "tgt", "output", "answer", "pronunciation"}},
	data.KindLabels: {{"text", "source", "input", "sentence", "review", "message"}, {"label", "class", "category", "sentiment", "target"}},
	data.KindTags:   {{"tokens", "words", "text", "sentence", "source"}, {"tags", "labels", "ner_tags", "pos_tags", "target"}},
}

// all returns the texts of both columns.
func (r rows) all(yield func(string) bool) {
	for column := range 2 {
		for text := range r.column(column) {
			if !yield(text) {
				return
			}
		}
	}
}

// openRows reads the rows of a configuration's files and completes it by them.
func openRows(c *Config) (set, error) {
	s := &rowSet{look: &Look{File: c.Data.File, kind: c.Task.Kind, seed: c.Seed, from: c.From.Dir != ""}}
	table, err := readRows(c, c.Data.File, c.Data.TargetFile, &c.Data.SHA256)
	if err != nil {
		return nil, err
	}
	s.look.bad(table)
	s.look.rows(table)
	if c.Data.TargetFile != "" {
		s.look.Columns = fmt.Sprintf("the lines of it, and those of %s", c.Data.TargetFile)
	}
	s.trains.table, s.validates.table = table, table
	if c.Data.ValidationFile != "" && c.Data.Validation != 0 {
		if s.validates.table, err = readRows(c, c.Data.ValidationFile, c.Data.ValidationTargetFile, &c.Data.ValidationSHA256); err != nil {
			return nil, err
		}
		s.look.Validation = c.Data.ValidationFile
		s.look.bad(s.validates.table)
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

// readRows reads a file of rows, or two parallel ones of lines, and sets the sum that is empty or checks it.
func readRows(c *Config, path, targets string, sum *string) (*data.Table, error) {
	check := c.checkTags
	if c.Task.Kind != data.KindTags {
		check = nil
	}
	var table *data.Table
	var err error
	if targets != "" {
		table, err = data.ReadParallel([]string{path, targets}, check)
	} else {
		table, err = data.ReadTable(path, data.TableOptions{Columns: c.Data.Columns, Known: known[c.Task.Kind], Check: check})
	}
	if err != nil {
		return nil, err
	}
	if table.Len() == 0 {
		return nil, fmt.Errorf("data file %q has no rows to learn from", path)
	}
	is := strings.Join(table.SHA256, " ")
	if *sum = cmp.Or(*sum, is); *sum != is {
		return nil, fmt.Errorf("data file %q has changed since the run began: restore it", path)
	}
	return table, nil
}

// checkTags finds rows whose tags aren't one for each symbol.
func (c *Config) checkTags(fields []string) error {
	count := func(units data.Units, field string) int {
		if units == data.Characters {
			return utf8.RuneCountInString(field)
		}
		return len(strings.Fields(field))
	}
	if symbols, tags := count(c.Data.SourceUnits, fields[0]), count(c.Data.TargetUnits, fields[1]); symbols != tags {
		return fmt.Errorf("%d symbols have %d tags, and each needs one", symbols, tags)
	}
	return nil
}

// divide says which rows train and which validate: without a file for that, those of some sources.
func (s *rowSet) divide(c *Config) error {
	table := s.trains.table
	sources := s.look.Sources
	held := make([]bool, table.Len())
	if c.Data.ValidationFile == "" && c.Data.Validation > 0 {
		if sources < 2 {
			return configErrorf("data file %q has %d source, and none is left to validate on: name a file with %s, or give a %s of 0", c.Data.File, sources, setting("data.validation_file"), setting("data.validation"))
		}
		// A share of the sources, and twice that where so few of them aren't lucky enough for one.
		for share, n := min(0.1, float64(c.Data.Validation)/float64(sources)), 0; n == 0; share *= 2 {
			together := map[string]bool{}
			for i := range held {
				if held[i] = data.HeldOut(c.Seed, table.Field(i, 0), share); held[i] {
					n++
					together[table.Field(i, 0)] = true
				}
			}
			s.look.Held = len(together)
			if n == len(held) {
				return configErrorf("data file %q has %d sources, which the seed %d holds out together: name a file with %s, or give another %s", c.Data.File, sources, c.Seed, setting("data.validation_file"), setting("seed"))
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

// column returns the texts of a column of some rows.
func (r rows) column(column int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, n := range r.number {
			if !yield(r.table.Field(int(n), column)) {
				return
			}
		}
	}
}

// lengths are how many ids a row's source and its answer have; of labels, the class that the answer is.
type lengths [2]int32

// measures are the lengths of some rows, and how many of them have symbols on either side that aren't known.
type measures struct {
	rows    []lengths
	unknown [2]int
}

// measure encodes every row once. It leaves out those that are too long, and puts the others into buckets.
func (s *rowSet) measure(c *Config) error {
	trains, err := measured(c, s.trains)
	if err != nil {
		return err
	}
	validates, err := measured(c, s.validates)
	if err != nil {
		return err
	}
	if n := trains.unknown[1]; s.look.from && 2*n > len(trains.rows) {
		return configErrorf("data file %q: %d of %d answers to train on have symbols that the model of %q doesn't know and can't write: begin without its weights",
			c.Data.File, n, len(trains.rows), c.From.Dir)
	}
	c.Task.MaxLen = cmp.Or(c.Task.MaxLen, max(leastLen, enough(0, trains.rows, validates.rows)))
	if c.Task.Kind == data.KindPairs {
		c.Task.MaxAnswer = cmp.Or(c.Task.MaxAnswer, enough(1, trains.rows, validates.rows))
	}
	s.look.Source.measure(c.Task.Source, c.Data.SourceUnits, trains, validates, 0, s.look.from)
	if c.Task.Kind != data.KindLabels {
		s.look.Answer.measure(c.target(), c.Data.TargetUnits, trains, validates, 1, s.look.from)
	}
	s.leaveOut(c, &s.trains, &trains)
	s.held = rows{table: s.validates.table, number: slices.Clone(s.validates.number)}
	s.leaveOut(c, &s.validates, &validates)
	if len(trains.rows) == 0 || len(validates.rows) == 0 && c.Data.Validation > 0 {
		return configErrorf("data file %q: no row is left to train or to validate on that has a source of at most %d symbols and an answer of at most %d: give a greater %s or %s",
			c.Data.File, c.Task.MaxLen, c.Task.MaxAnswer, setting("task.max_len"), setting("task.max_answer"))
	}
	b := newBuckets(c, trains.rows, validates.rows)
	s.widths = b.widths()
	s.trains.bucket, s.validates.bucket = b.of(trains.rows), b.of(validates.rows)
	s.total = len(validates.rows)
	for _, l := range trains.rows {
		s.symbols += int(l[0])
		if c.Task.Kind == data.KindPairs {
			s.symbols += int(l[1])
		}
	}
	if c.Task.Kind != data.KindPairs {
		s.count(c, trains.rows, validates.rows)
	}
	return nil
}

// target returns what takes answers apart.
func (c *Config) target() data.Tokenizer {
	if c.Task.Target != nil {
		return c.Task.Target
	}
	return c.Task.Source
}

// measured returns the lengths of rows.
func measured(c *Config, r rows) (measures, error) {
	classes := map[string]int32{}
	for i, class := range c.Task.Classes {
		classes[class] = int32(i)
	}
	m := measures{rows: make([]lengths, len(r.number))}
	encode := func(t data.Tokenizer, text string) (n int32, unknown int, err error) {
		ids, err := t.Encode(text)
		if id := t.Unknown(); id >= 0 && slices.Contains(ids, id) {
			unknown = 1
		}
		return int32(len(ids)), unknown, err
	}
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs, unknown := make([]error, workers), make([][2]int, workers)
	for w := range workers {
		wait.Go(func() {
			for i := w * len(m.rows) / workers; i < (w+1)*len(m.rows)/workers && errs[w] == nil; i++ {
				e := r.example(i)
				var u [2]int
				m.rows[i][0], u[0], errs[w] = encode(c.Task.Source, e.Source)
				if c.Task.Kind == data.KindLabels {
					m.rows[i][1] = classes[e.Answer]
				} else if errs[w] == nil {
					m.rows[i][1], u[1], errs[w] = encode(c.target(), e.Answer)
				}
				unknown[w][0] += u[0]
				unknown[w][1] += u[1]
				if errs[w] != nil {
					errs[w] = fmt.Errorf("line %d: %w", r.table.Line(int(r.number[i])), errs[w])
				}
			}
		})
	}
	wait.Wait()
	for _, u := range unknown {
		m.unknown[0] += u[0]
		m.unknown[1] += u[1]
	}
	return m, errors.Join(errs...)
}

// enough returns how long a side of a row may be: half as long again as the longest, for what is yet to be asked,
// unless that is far longer than nearly all.
func enough(side int, all ...[]lengths) int {
	var counts []int // of rows, by their length
	n := 0
	for _, rows := range all {
		for _, l := range rows {
			for int(l[side]) >= len(counts) {
				counts = append(counts, 0)
			}
			counts[l[side]]++
			n++
		}
	}
	usual := 0 // of 99 rows in 100
	for at := counts[0]; 100*at < 99*n; at += counts[usual] {
		usual++
	}
	return max(1, min((len(counts)-1)*3/2, max(leastLen, min(2*usual, maxUsual))))
}

const (
	leastLen = 64  // what a source may have in any case, as an unknown word of many pieces
	maxUsual = 512 // the longest that a side may be unless the configuration says so
)

// leaveOut leaves rows out that are too long. A label's text is cut instead.
func (s *rowSet) leaveOut(c *Config, r *rows, m *measures) {
	s.look.MaxLen, s.look.Max = c.Task.MaxLen, c.Task.MaxAnswer
	n := 0
	for i, l := range m.rows {
		long := int(l[0]) > c.Task.MaxLen || c.Task.Kind == data.KindPairs && int(l[1]) > c.Task.MaxAnswer
		if long {
			s.look.Long++
		}
		if long && c.Task.Kind == data.KindLabels {
			l[0], long = int32(c.Task.MaxLen), false
		}
		if !long {
			r.number[n], m.rows[n] = r.number[i], l
			n++
		}
	}
	r.number, m.rows = r.number[:n], m.rows[:n]
}

// count counts labels, or tags, and balances them if that is asked for.
func (s *rowSet) count(c *Config, trains, validates []lengths) {
	names := c.Task.Classes
	var counts [2][]int
	for i, r := range []rows{s.trains, s.validates} {
		if c.Task.Kind == data.KindLabels {
			counts[i] = make([]int, len(names))
			for _, l := range [][]lengths{trains, validates}[i] {
				counts[i][l[1]]++
			}
			continue
		}
		counts[i] = make([]int, c.Task.Target.Len())
		for tags := range r.column(1) {
			ids, _ := c.Task.Target.Encode(tags) // as it went well in measured
			for _, id := range ids {
				counts[i][id]++
			}
		}
	}
	if c.Task.Kind == data.KindTags {
		s.total = 0
		for id, n := range counts[1] {
			name, _ := c.Task.Target.Decode([]int{id})
			names, s.total = append(names, name), s.total+n
		}
	}
	s.look.labels(names, counts[0], counts[1])
	if c.Training.ClassWeights != "" {
		s.classWeights = balanced(counts[0])
	}
}

// balanced returns weights of classes by which all that there are count for the same.
func balanced(counts []int) []float64 {
	seen, total := 0, 0
	for _, n := range counts {
		seen, total = seen+min(n, 1), total+n
	}
	weights := make([]float64, len(counts))
	for class, n := range counts {
		weights[class] = 1
		if n > 0 {
			weights[class] = float64(total) / float64(seen) / float64(n)
		}
	}
	return weights
}

// complete sets what the rows decide of the configuration where it leaves that open.
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
		steps += (n + t.Batch - 1) / t.Batch
	}
	if t.Steps = cmp.Or(t.Steps, steps); t.Steps != steps {
		return configErrorf("%s must be %d, one pass over the file, or 0 for that, got %d: %s has checks more often", setting("training.steps"), steps, t.Steps, setting("training.check_every"))
	}
	t.plan(steps)
	s.batch = t.Batch
	s.look.Trains, s.look.Validates = len(s.trains.number), len(s.validates.number)
	return nil
}

// example returns a source to try, preferably one that isn't trained on and is easily typed.
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
	return s.examples(s.trains, train.Shuffled, c.Batch/max(1, c.MicroBatches))
}

func (s *rowSet) validation() examples { return s.examples(s.validates, train.InOrder, s.batch) }

// examples are rows whose batches have so many, the last ones padding, so that a bucket is one graph.
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
