package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task"
)

// An example is a source with the model's answer, made safe to show.
type example struct {
	Source   string
	Answer   parts  // the Middle differs from the nearest right answer
	Want     parts  // the nearest right answer
	Sure     string // the probability that the model gave its answer
	Answered bool
}

// parts are a text in three parts. The page marks the middle one.
type parts struct{ Before, Middle, After string }

// The most examples that a page judges. Long ones are fewer, so that the end of training doesn't wait for the page.
const (
	judged        = 400
	judgedAtLeast = 20
	judgedLength  = 200_000 // bytes of all sources
)

const (
	shownExamples = 8   // right ones, and wrong ones
	shownLength   = 200 // characters of a source or an answer
	shownClasses  = 12
	shownLengths  = 8
)

// judge adds how the model answers some examples.
func (v *answers) judge(ctx context.Context) error {
	examples := v.Examples()
	if len(examples) == 0 {
		return nil
	}
	some := spread(examples, v.Config.Kind().Sequences)
	r, err := v.Model.Judge(ctx, some, task.PredictOptions{})
	if err != nil {
		return err
	}
	v.Report, v.Some = r, len(some) < len(examples)
	if v.Config.Kind().Classes {
		v.Confusion = confusionOf(&r.Classes)
	} else {
		v.Lengths = lengthsOf(r, v.Config.Data.SourceUnits)
	}
	if v.Private {
		return nil
	}
	order := slices.Clone(r.Judged) // the surest first
	slices.SortStableFunc(order, func(a, b task.Judged) int { return cmp.Compare(b.Answer.LogProb, a.Answer.LogProb) })
	add := func(list *[]example, j task.Judged) {
		if e := exampleOf(j, r.Units); len(*list) < shownExamples && !slices.Contains(*list, e) {
			*list = append(*list, e)
		}
	}
	for _, j := range order {
		if !j.Right {
			add(&v.Wrong, j)
		}
	}
	slices.Reverse(order)
	for _, j := range order {
		if j.Right {
			add(&v.Right, j)
		}
	}
	return nil
}

// spread returns some of the examples, at equal distances. With pairs it chooses sources, and returns all examples of
// each.
func spread(examples []data.Example, pairs bool) []data.Example {
	var groups [][]data.Example
	number := map[string]int{} // of a source's group
	for _, e := range examples {
		if i, ok := number[e.Source]; ok && pairs {
			groups[i] = append(groups[i], e)
			continue
		}
		number[e.Source] = len(groups)
		groups = append(groups, []data.Example{e})
	}
	length := 1
	for _, g := range groups {
		length += len(g[0].Source)
	}
	n := min(len(groups), judged, max(judgedAtLeast, judgedLength*len(groups)/length))
	var some []data.Example
	for i := range n {
		some = append(some, groups[i*len(groups)/n]...)
	}
	return some
}

// exampleOf returns an example as it is shown.
func exampleOf(j task.Judged, units tokenizer.Units) example {
	e := example{Source: shown(j.Source), Answered: j.Answer.Err == nil, Sure: percent(math.Exp(j.Answer.LogProb))}
	if j.Right {
		e.Answer.Before = shown(j.Answer.Text)
		return e
	}
	most := -1
	for _, reference := range j.References { // the page shows the one that shares most with the answer
		answer, want := differ(shown(j.Answer.Text), shown(reference), units)
		if same := len(answer.Before) + len(answer.After); same > most {
			e.Answer, e.Want, most = answer, want, same
		}
	}
	return e
}

// differ divides two texts into the beginning that they share, the middle, and the end that they share. It compares
// tokens, or characters if those are the units.
func differ(a, b string, units tokenizer.Units) (parts, parts) {
	between := " "
	if units == tokenizer.Characters {
		between = ""
	}
	x, y := strings.Split(a, between), strings.Split(b, between)
	shorter := min(len(x), len(y))
	from, end := 0, 0
	for from < shorter && x[from] == y[from] {
		from++
	}
	for end < shorter-from && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	cut := func(units []string) parts {
		p := parts{strings.Join(units[:from], between), strings.Join(units[from:len(units)-end], between), strings.Join(units[len(units)-end:], between)}
		if from > 0 && from < len(units) {
			p.Before += between
		}
		if end > 0 && end < len(units)-from {
			p.After = between + p.After
		}
		return p
	}
	return cut(x), cut(y)
}

// shown returns a text of the data for the page: on one line, and cut if it is long.
func shown(s string) string {
	if r := []rune(s); len(r) > shownLength {
		s = string(r[:shownLength]) + "…"
	}
	return text.EscapeExcept(s, "")
}

// A length says how sources within a range of lengths were answered.
type length struct {
	Range    string
	N, Right int
	Share    float64 // of right answers
	Edits    float64 // the mean per source
}

// lengthsOf divides the sources by their length.
func lengthsOf(r *task.Report, units tokenizer.Units) []length {
	lengthOf := func(j task.Judged) int {
		if units == tokenizer.Tokens || units == tokenizer.BPE {
			return len(strings.Fields(j.Source))
		}
		return utf8.RuneCountInString(j.Source)
	}
	order := slices.SortedStableFunc(slices.Values(r.Judged), func(a, b task.Judged) int { return cmp.Compare(lengthOf(a), lengthOf(b)) })
	low, high := lengthOf(order[0]), lengthOf(order[len(order)-1])
	width := (high - low + shownLengths) / shownLengths
	var lengths []length
	for from := low; from <= high; from += width {
		l := length{Range: fmt.Sprint(from)}
		if last := min(high, from+width-1); last > from {
			l.Range = fmt.Sprintf("%d–%d", from, last)
		}
		for _, j := range order {
			if n := lengthOf(j); n < from || n >= from+width {
				continue
			}
			l.N++
			l.Edits += float64(j.Edits)
			if j.Right {
				l.Right++
			}
		}
		if l.N > 0 {
			l.Share, l.Edits = float64(l.Right)/float64(l.N), l.Edits/float64(l.N)
			lengths = append(lengths, l)
		}
	}
	return lengths
}

// A confusion is a table of right classes by answered classes.
type confusion struct {
	Classes []string
	Rows    []confused
	Of      int // the number of all classes; the table has the most confused ones
}

type confused struct {
	score.ClassScore
	Cells []confusionCell
}

type confusionCell struct {
	N     int
	Share float64 // of the examples of the row's class
	Right bool
	Title string
}

// confusionOf returns the table of all classes or, if there are many, of the most confused ones.
func confusionOf(c *score.Confusion) *confusion {
	all := c.Classes()
	shownOf := slices.Clone(all)
	wrong := func(s score.ClassScore) int { return s.Rows + s.Answers - 2*s.Right }
	slices.SortStableFunc(shownOf, func(a, b score.ClassScore) int {
		return cmp.Or(cmp.Compare(wrong(b), wrong(a)), cmp.Compare(b.Rows, a.Rows))
	})
	shownOf = shownOf[:min(len(shownOf), shownClasses)]
	slices.SortStableFunc(shownOf, func(a, b score.ClassScore) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.Class, b.Class))
	})
	t := &confusion{Of: len(all)}
	for _, s := range shownOf {
		t.Classes = append(t.Classes, className(s.Class))
	}
	for _, right := range shownOf {
		row := confused{ClassScore: right}
		row.Class = className(right.Class)
		for i, answered := range shownOf {
			n := c.Count(answered.Class, right.Class)
			row.Cells = append(row.Cells, confusionCell{
				N: n, Share: float64(n) / float64(max(1, right.Rows)), Right: answered.Class == right.Class,
				Title: fmt.Sprintf("%s is right, %s was answered: %d", row.Class, t.Classes[i], n),
			})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// className returns a class for a table: "(none)" if it is empty, and cut if it is long.
func className(class string) string {
	if class == "" {
		return "(none)"
	}
	if r := []rune(class); len(r) > 24 {
		class = string(r[:23]) + "…"
	}
	return text.EscapeExcept(class, "")
}
