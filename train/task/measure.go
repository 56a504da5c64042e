package task

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/setting"
)

// lengths are the numbers of ids of a row's source and of its answer; 0 for a label.
type lengths [2]int32

// measures are the lengths of some rows, and the number of sources and of answers with unknown symbols.
type measures struct {
	rows    []lengths
	unknown [2]int
}

// measure encodes every row once. It leaves out rows that are too long, and assigns the others to buckets.
func (s *rowSet) measure(c *Config) error {
	k := c.Kind()
	trains, err := measured(c, s.trains)
	if err != nil {
		return err
	}
	validates, err := measured(c, s.validates)
	if err != nil {
		return err
	}
	if n := trains.unknown[1]; s.description.from && 2*n > len(trains.rows) {
		return setting.Errorf("data file %q: %d of %d training answers have symbols that the model of %q doesn't know and can't write: start without its weights",
			c.Data.File, n, len(trains.rows), c.From.Dir)
	}
	c.Task.MaxLen = cmp.Or(c.Task.MaxLen, max(leastLen, enough(0, trains.rows, validates.rows)))
	if k.Sequences {
		c.Task.MaxAnswer = cmp.Or(c.Task.MaxAnswer, enough(1, trains.rows, validates.rows))
	}
	s.description.Source.measure(c.Task.Source, c.Data.SourceUnits, trains, validates, 0, s.description.from)
	if k.AnswerUnits {
		s.description.Answer.measure(c.target(), c.Data.TargetUnits, trains, validates, 1, s.description.from)
	}
	s.leaveOut(c, &s.trains, &trains)
	s.held = rows{table: s.validates.table, number: slices.Clone(s.validates.number)}
	s.leaveOut(c, &s.validates, &validates)
	if len(trains.rows) == 0 || len(validates.rows) == 0 && c.Data.Validation > 0 {
		return setting.Errorf("data file %q: no row is left for training or validation with a source of at most %d symbols and an answer of at most %d: set a greater %s or %s",
			c.Data.File, c.Task.MaxLen, c.Task.MaxAnswer, setting.Path("task.max_len"), setting.Path("task.max_answer"))
	}
	b := newBuckets(c, trains.rows, validates.rows)
	s.widths = b.widths()
	s.trains.bucket, s.validates.bucket = b.assign(trains.rows), b.assign(validates.rows)
	s.total = len(validates.rows)
	for _, l := range trains.rows {
		s.symbols += int(l[0])
		if k.Sequences {
			s.symbols += int(l[1])
		}
	}
	if k.Classes {
		s.count(c)
	}
	return nil
}

// target returns the tokenizer of answers.
func (c *Config) target() tokenizer.Tokenizer {
	if c.Task.Target != nil {
		return c.Task.Target
	}
	return c.Task.Source
}

// measured returns the measures of rows.
func measured(c *Config, r rows) (measures, error) {
	sides := []tokenizer.Tokenizer{c.Task.Source, c.target()}
	if !c.Kind().AnswerUnits {
		sides = sides[:1]
	}
	m := measures{rows: make([]lengths, len(r.number))}
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs, unknown := make([]error, workers), make([][2]int, workers)
	for w := range workers {
		wait.Go(func() {
			errs[w] = apart.Call(func() error { // tokenizers may be a user's own
				for i := w * len(m.rows) / workers; i < (w+1)*len(m.rows)/workers; i++ {
					var err error
					if m.rows[i], err = lengthsOf(r.example(i), sides, &unknown[w]); err != nil {
						return fmt.Errorf("line %d: %w", r.table.Line(int(r.number[i])), err)
					}
				}
				return nil
			})
		})
	}
	wait.Wait()
	err := errors.Join(errs...)
	apart.Repanic(err)
	for _, u := range unknown {
		m.unknown[0] += u[0]
		m.unknown[1] += u[1]
	}
	return m, err
}

// lengthsOf returns the lengths of a row, and adds 1 to unknown for each side with unknown symbols. The argument sides
// has the tokenizer of each side.
func lengthsOf(e data.Example, sides []tokenizer.Tokenizer, unknown *[2]int) (l lengths, err error) {
	for k, t := range sides {
		n, isUnknown, err := encoded(t, []string{e.Source, e.Answer}[k])
		if err != nil {
			return l, err
		}
		if l[k] = int32(n); isUnknown {
			unknown[k]++
		}
	}
	return l, nil
}

// encoded returns the number of ids of a text, and whether the text has symbols that the tokenizer doesn't know. For
// some tokenizers, an unknown symbol is an error.
func encoded(t tokenizer.Tokenizer, text string) (ids int, unknown bool, err error) {
	all, err := t.Encode(text)
	return len(all), err != nil || t.Unknown() >= 0 && slices.Contains(all, t.Unknown()), err
}

// enough returns the greatest allowed length for one side of a row. It is 1.5 times the longest, because later inputs
// may be longer. A few very long rows must not decide it, so it is at most twice the length that 99 % of the rows fit,
// and at most maxUsual. If this limit is below leastLen, leastLen is the limit.
func enough(side int, all ...[]lengths) int {
	var counts []int // number of rows of each length
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
	usual := 0 // length that 99 % of the rows fit
	for fit := counts[0]; 100*fit < 99*n; fit += counts[usual] {
		usual++
	}
	return max(1, min((len(counts)-1)*3/2, max(leastLen, min(2*usual, maxUsual))))
}

const (
	leastLen = 64  // length that is always allowed for a source, for example for a word that byte pairs split into many pieces
	maxUsual = 512 // greatest length of a side, unless the configuration sets it
)

// leaveOut leaves out rows that are too long. For classification, it cuts the source instead.
func (s *rowSet) leaveOut(c *Config, r *rows, m *measures) {
	s.description.MaxLen, s.description.Max = c.Task.MaxLen, c.Task.MaxAnswer
	k, n := c.Kind(), 0
	for i, l := range m.rows {
		long := int(l[0]) > c.Task.MaxLen || k.Sequences && int(l[1]) > c.Task.MaxAnswer
		if long {
			s.description.Long++
		}
		if long && !k.AnswerUnits {
			l[0], long = int32(c.Task.MaxLen), false
		}
		if !long {
			r.number[n], m.rows[n] = r.number[i], l
			n++
		}
	}
	r.number, m.rows = r.number[:n], m.rows[:n]
}

// count counts labels or tags, and sets the class weights if the configuration asks for them.
func (s *rowSet) count(c *Config) {
	names, numbers := slices.Clone(c.Task.Classes), map[string]int{}
	for i, name := range names {
		numbers[name] = i
	}
	classes := func(answer string) []int { return []int{numbers[answer]} }
	if c.Task.Target != nil { // errors would have occurred in measured
		for id := range c.Task.Target.Len() {
			name, _ := c.Task.Target.Decode([]int{id})
			names = append(names, name)
		}
		classes = func(answer string) []int { ids, _ := c.Task.Target.Encode(answer); return ids }
	}
	counts := [2][]int{make([]int, len(names)), make([]int, len(names))}
	s.total = 0
	for i, r := range []rows{s.trains, s.validates} {
		for answer := range r.column(1) {
			ids := classes(answer)
			for _, id := range ids {
				counts[i][id]++
			}
			s.total += i * len(ids)
		}
	}
	s.description.labels(names, counts[0], counts[1])
	if c.Training.ClassWeights != "" {
		s.classWeights = balanced(counts[0])
	}
}

// balanced returns a weight for each class, so that all classes with rows have the same total weight.
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
