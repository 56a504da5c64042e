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
	Answer   parts  // whose Middle differs from the nearest reference
	Want     parts  // that reference, or what is right
	Sure     string // the probability that the model gave its answer
	Answered bool
}

// parts are a text in three, of which the middle one stands out.
type parts struct{ Before, Middle, After string }

// A report judges few examples, and fewer where they are long, so that training's end doesn't wait for it.
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

// judge adds what the model makes of some examples.
func (v *answers) judge(ctx context.Context) error {
	examples := v.Examples()
	if len(examples) == 0 {
		return nil
	}
	some := spread(examples, v.Config.Task.Kind == data.KindSeq2Seq)
	r, err := v.Model.Judge(ctx, some, task.PredictOptions{})
	if err != nil {
		return err
	}
	v.Report, v.Some = r, len(some) < len(examples)
	if r.Kind == data.KindClassification || r.Kind == data.KindTagging && v.Config.Data.File != "" {
		v.Confusion = confusionOf(&r.Classes)
	} else {
		v.Lengths = lengthsOf(r, v.Config.Data.SourceUnits)
	}
	if v.Private {
		return nil
	}
	order := slices.Clone(r.Judged) // the surest first
	slices.SortStableFunc(order, func(a, b task.Judged) int { return cmp.Compare(b.Answer.LogProb, a.Answer.LogProb) })
	add := func(to *[]example, j task.Judged) {
		if e := exampleOf(j, r.Units); len(*to) < shownExamples && !slices.Contains(*to, e) {
			*to = append(*to, e)
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

// spread returns some of the examples, at equal distances or, of pairs, those of some of the sources, with all answers
// that each has.
func spread(examples []data.Example, pairs bool) []data.Example {
	var groups [][]data.Example
	at := map[string]int{}
	for _, e := range examples {
		if i, ok := at[e.Source]; ok && pairs {
			groups[i] = append(groups[i], e)
			continue
		}
		at[e.Source] = len(groups)
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
	for _, reference := range j.References { // of which that is shown which has most of the answer's beginning and end
		answer, want := differ(shown(j.Answer.Text), shown(reference), units)
		if same := len(answer.Before) + len(answer.After); same > most {
			e.Answer, e.Want, most = answer, want, same
		}
	}
	return e
}

// differ divides two texts into the beginning that they share, the end that they share, and what is between: characters
// or, of other units, tokens.
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
	cut := func(of []string) parts {
		p := parts{strings.Join(of[:from], between), strings.Join(of[from:len(of)-end], between), strings.Join(of[len(of)-end:], between)}
		if from > 0 && from < len(of) {
			p.Before += between
		}
		if end > 0 && end < len(of)-from {
			p.After = between + p.After
		}
		return p
	}
	return cut(x), cut(y)
}

// shown returns a text of the data as it is shown: on one line, and not endlessly long.
func shown(s string) string {
	if r := []rune(s); len(r) > shownLength {
		s = string(r[:shownLength]) + "…"
	}
	return text.EscapeExcept(s, "")
}

// A length is how sources of some lengths were answered.
type length struct {
	Range    string
	N, Right int
	Share    float64 // of those that are right
	Edits    float64 // a source, on average
}

// lengthsOf returns how sources were answered by their length.
func lengthsOf(r *task.Report, units tokenizer.Units) []length {
	of := func(j task.Judged) int {
		if units == tokenizer.Tokens || units == tokenizer.BPE {
			return len(strings.Fields(j.Source))
		}
		return utf8.RuneCountInString(j.Source)
	}
	order := slices.SortedStableFunc(slices.Values(r.Judged), func(a, b task.Judged) int { return cmp.Compare(of(a), of(b)) })
	low, high := of(order[0]), of(order[len(order)-1])
	width := (high - low + shownLengths) / shownLengths
	var lengths []length
	for from := low; from <= high; from += width {
		l := length{Range: fmt.Sprint(from)}
		if to := min(high, from+width-1); to > from {
			l.Range = fmt.Sprintf("%d–%d", from, to)
		}
		for _, j := range order {
			if n := of(j); n < from || n >= from+width {
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

// A confusion is a table of what was answered where what was right.
type confusion struct {
	Classes []string
	Rows    []confused
	Of      int // classes, of which those that are most often confused are shown
}

type confused struct {
	score.ClassScore
	Cells []confusionCell
}

type confusionCell struct {
	N     int
	Share float64 // of those where the row's class is right
	Right bool
	Title string
}

// confusionOf returns the table of the classes, or of those that are most often taken for others.
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

// className returns a class as a table shows it.
func className(class string) string {
	if class == "" {
		return "(none)"
	}
	if r := []rune(class); len(r) > 24 {
		class = string(r[:23]) + "…"
	}
	return text.EscapeExcept(class, "")
}
