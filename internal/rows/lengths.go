package rows

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/oov"
	"github.com/heed-go/heed/internal/setting"
)

// measure encodes every row once. It removes rows that are too long, and assigns the others to buckets.
func (s *Set) measure(rule *data.Rule) error {
	tokenizers := []tokenizer.Tokenizer{rule.SourceTokenizer(), rule.AnswerTokenizer()}
	if !s.format.AnswerUnits {
		tokenizers = tokenizers[:1]
	}
	trains, err := measured(s.Train, tokenizers)
	if err != nil {
		return err
	}
	validates, err := measured(s.Validation, tokenizers)
	if err != nil {
		return err
	}
	if n := trains.unknown[1]; s.from != "" && 2*n > len(trains.rows) {
		return setting.Errorf("data file %q: %d of %d training answers have symbols that the model of %q doesn't know and can't write: start without its weights",
			s.settings.File, n, len(trains.rows), s.from)
	}
	if rule.MaxLen == 0 {
		rule.MaxLen = max(leastLen, enough(0, trains.rows, validates.rows))
		if limit := rule.Published.MaxLen; limit > 0 {
			rule.MaxLen = min(rule.MaxLen, limit)
		}
		if s.format.Windows {
			rule.MaxLen = min(rule.MaxLen, data.UsualWindow)
		}
	}
	if s.format.Sequences {
		if limit := rule.Published.MaxLen; rule.MaxAnswer == 0 {
			rule.MaxAnswer = min(enough(1, trains.rows, validates.rows), cmp.Or(limit, math.MaxInt))
		}
	}
	d := s.Description
	for side, t := range tokenizers {
		[]*Side{&d.Source, &d.Answer}[side].measure(t, trains, validates, side, d.from)
	}
	d.Source.Units, d.Answer.Units = s.settings.SourceUnits, s.settings.TargetUnits
	d.MaxLen, d.MaxAnswer = rule.MaxLen, rule.MaxAnswer
	s.Held = s.Validation
	s.Held.numbers = slices.Clone(s.Validation.numbers)
	if s.format.Windows {
		if err := cmp.Or(s.divide(&s.Train, &trains, rule), s.divide(&s.Validation, &validates, rule)); err != nil {
			return err
		}
	}
	s.leaveOut(&s.Train, &trains)
	s.leaveOut(&s.Validation, &validates)
	if len(trains.rows) == 0 || len(validates.rows) == 0 && s.settings.Validation > 0 {
		return setting.Errorf("data file %q: no row is left for training or validation with a source of at most %d symbols and an answer of at most %d: set a greater %s or %s",
			s.settings.File, rule.MaxLen, rule.MaxAnswer, setting.Path("task.max_len"), setting.Path("task.max_answer"))
	}
	b := newBuckets(s.format, rule, trains.rows, validates.rows)
	s.widths = b.widths()
	s.Train.buckets, s.Validation.buckets = b.assign(trains.rows), b.assign(validates.rows)
	for _, l := range trains.rows {
		s.Symbols += int(l[0])
		if s.format.Sequences {
			s.Symbols += int(l[1])
		}
	}
	return nil
}

// measured returns the measures of rows. The argument tokenizers has the tokenizer of sources and, if answers are split
// into units, the tokenizer of answers.
func measured(p Part, tokenizers []tokenizer.Tokenizer) (measures, error) {
	m := measures{rows: make([]lengths, p.Len())}
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs, unknown := make([]error, workers), make([][2]int, workers)
	for w := range workers {
		wait.Go(func() {
			errs[w] = apart.Call(func() error { // tokenizers may be a user's own
				for i := w * len(m.rows) / workers; i < (w+1)*len(m.rows)/workers; i++ {
					var err error
					if m.rows[i], err = p.lengths(i, tokenizers, &unknown[w]); err != nil {
						return fmt.Errorf("line %d: %w", p.table.Line(int(p.numbers[i])), err)
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

// lengths returns the lengths of row i, and adds 1 to unknown for each side with unknown symbols. Of several
// texts, the longest counts.
func (p Part) lengths(i int, tokenizers []tokenizer.Tokenizer, unknown *[2]int) (l lengths, err error) {
	e := p.Example(i)
	for side, t := range tokenizers {
		texts, isUnknown := [][]string{{e.Source}, {e.Answer}}[side], false
		if p.each > 0 {
			texts = e.Texts(p.each)
		}
		for _, text := range texts {
			n, some, err := oov.Count(t, text)
			if err != nil {
				return l, err
			}
			l[side], isUnknown = max(l[side], int32(n)), isUnknown || side == 1 && some > 0 || oov.Strange(t, n, some)
		}
		if isUnknown {
			unknown[side]++
		}
	}
	return l, nil
}

// enough returns the greatest allowed length for one side of a row. It is 1.5 times the longest, because later inputs
// may be longer, but at most a limit, so that a few very long rows don't decide it. The limit is twice the length that
// 99 % of the rows fit, but at least leastLen and at most maxUsual.
func enough(side int, parts ...[]lengths) int {
	var counts []int // number of rows of each length
	n := 0
	for _, rows := range parts {
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

// divide makes a row for each window of the rows.
func (s *Set) divide(p *Part, m *measures, rule *data.Rule) error {
	var numbers []int32
	var windows []data.Example
	var rows []lengths
	for i, n := range p.numbers {
		some, ids, err := rule.Divide(p.Example(i))
		if err != nil {
			return fmt.Errorf("line %d: %w", p.table.Line(int(n)), err)
		}
		if windows = append(windows, some...); len(some) > 1 {
			s.Description.Windows++
		}
		for _, length := range ids {
			numbers, rows = append(numbers, n), append(rows, lengths{int32(length)})
		}
	}
	p.numbers, p.windows, m.rows = numbers, windows, rows
	return nil
}

// leaveOut removes rows that are too long. If answers have no units, it cuts the source instead.
func (s *Set) leaveOut(p *Part, m *measures) {
	d, n := s.Description, 0
	for i, l := range m.rows {
		long := int(l[0]) > d.MaxLen || s.format.Sequences && int(l[1]) > d.MaxAnswer
		if long {
			d.Long++
		}
		if long && !s.format.AnswerUnits {
			l[0], long = int32(d.MaxLen), false
		}
		if !long {
			p.numbers[n], m.rows[n] = p.numbers[i], l
			n++
		}
	}
	p.numbers, m.rows = p.numbers[:n], m.rows[:n]
}
