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
		return setting.Errorf("data file %q: %d of %d answers to train on have symbols that the model of %q doesn't know and can't write: begin without its weights",
			c.Data.File, n, len(trains.rows), c.From.Dir)
	}
	c.Task.MaxLen = cmp.Or(c.Task.MaxLen, max(leastLen, enough(0, trains.rows, validates.rows)))
	if c.Task.Kind == data.KindSeq2Seq {
		c.Task.MaxAnswer = cmp.Or(c.Task.MaxAnswer, enough(1, trains.rows, validates.rows))
	}
	s.look.Source.measure(c.Task.Source, c.Data.SourceUnits, trains, validates, 0, s.look.from)
	if c.Task.Kind != data.KindClassification {
		s.look.Answer.measure(c.target(), c.Data.TargetUnits, trains, validates, 1, s.look.from)
	}
	s.leaveOut(c, &s.trains, &trains)
	s.held = rows{table: s.validates.table, number: slices.Clone(s.validates.number)}
	s.leaveOut(c, &s.validates, &validates)
	if len(trains.rows) == 0 || len(validates.rows) == 0 && c.Data.Validation > 0 {
		return setting.Errorf("data file %q: no row is left to train or to validate on that has a source of at most %d symbols and an answer of at most %d: give a greater %s or %s",
			c.Data.File, c.Task.MaxLen, c.Task.MaxAnswer, setting.Path("task.max_len"), setting.Path("task.max_answer"))
	}
	b := newBuckets(c, trains.rows, validates.rows)
	s.widths = b.widths()
	s.trains.bucket, s.validates.bucket = b.of(trains.rows), b.of(validates.rows)
	s.total = len(validates.rows)
	for _, l := range trains.rows {
		s.symbols += int(l[0])
		if c.Task.Kind == data.KindSeq2Seq {
			s.symbols += int(l[1])
		}
	}
	if c.Task.Kind != data.KindSeq2Seq {
		s.count(c, trains.rows, validates.rows)
	}
	return nil
}

// target returns what takes answers apart.
func (c *Config) target() tokenizer.Tokenizer {
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
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs, unknown := make([]error, workers), make([][2]int, workers)
	for w := range workers {
		wait.Go(func() {
			errs[w] = apart.Call(func() error { // tokenizers may be a user's own
				for i := w * len(m.rows) / workers; i < (w+1)*len(m.rows)/workers; i++ {
					var err error
					if m.rows[i], err = c.lengths(r.example(i), classes, &unknown[w]); err != nil {
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

// lengths returns the lengths of a row, and counts the sides with symbols that aren't known.
func (c *Config) lengths(e data.Example, classes map[string]int32, unknown *[2]int) (lengths, error) {
	l := lengths{1: classes[e.Answer]}
	texts := []string{e.Source, e.Answer}
	if c.Task.Kind == data.KindClassification {
		texts = texts[:1]
	}
	for k, text := range texts {
		n, isUnknown, err := encoded([]tokenizer.Tokenizer{c.Task.Source, c.target()}[k], text)
		if err != nil {
			return l, err
		}
		if l[k] = int32(n); isUnknown {
			unknown[k]++
		}
	}
	return l, nil
}

// encoded returns how many ids a text has, and whether there are symbols in it that a tokenizer doesn't know, which may
// be an error.
func encoded(t tokenizer.Tokenizer, text string) (ids int, unknown bool, err error) {
	all, err := t.Encode(text)
	return len(all), err != nil || t.Unknown() >= 0 && slices.Contains(all, t.Unknown()), err
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
		long := int(l[0]) > c.Task.MaxLen || c.Task.Kind == data.KindSeq2Seq && int(l[1]) > c.Task.MaxAnswer
		if long {
			s.look.Long++
		}
		if long && c.Task.Kind == data.KindClassification {
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
		if c.Task.Kind == data.KindClassification {
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
	if c.Task.Kind == data.KindTagging {
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
