package report

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task/judge"
)

// An example is a source with the model's answer. Its texts are safe to show.
type example struct {
	Source   string
	Answer   parts  // the model's answer; Middle is the part that differs from Want
	Want     parts  // the right answer that is most like the model's
	Sure     string // probability of the answer, according to the model; for texts, the rank of the right one
	Answered bool
	Why      int // ID of its explanation on the page; 0 if there is none

	Found, Marked string // entities of the answer and of the right answer
}

// parts is a text divided into three parts. The page marks the middle one.
type parts struct{ Before, Middle, After string }

// Limits for the number of examples that a page judges. If sources are long, it judges fewer, so that the page doesn't
// delay the end of training.
const (
	judged        = 400
	judgedAtLeast = 20
	judgedLength  = 200_000 // maximum bytes of all sources together
	judgedAll     = 2000    // up to this number, all examples of a task with two labels, or of texts to compare
)

const (
	shownExamples = 8   // maximum of right examples, and of wrong examples of a page or, for an evaluation, of a class
	shownLength   = 200 // maximum characters of a source or an answer
	shownClasses  = 12
	shownLengths  = 8
)

// judge adds the model's answers to some validation examples.
func (v *answers) judge(ctx context.Context) error {
	examples := v.examples
	if len(examples) == 0 {
		return nil
	}
	some := spread(examples, v.Config.Task.MaxAnswer > 0)
	if (v.twoLabels() || v.Config.Task.Texts > 0) && !v.Config.Drawn() && len(examples) <= judgedAll {
		some = examples // a rare label has too few rows in a sample, and a rank depends on the number of texts
	}
	r, err := judge.Answers(ctx, v.Model, some, model.PredictOptions{})
	if err != nil {
		return err
	}
	v.Some = len(some) < len(examples)
	return v.show(ctx, r)
}

// twoLabels reports whether an answer is one of two labels.
func (v *answers) twoLabels() bool { return len(v.Config.Task.Classes) == 2 }

// show adds the answers of a report to the page.
func (v *answers) show(ctx context.Context, r *judge.Report) error {
	v.Report = r
	switch {
	case judge.KindOf(v.Config).Right == "":
		if v.Scatter, v.Far = scatterOf(r, v.apart); v.Private {
			v.Far = nil
		}
		if v.Scatter == nil && v.Config.Describe().Predict != nil && !v.Private {
			return v.showRanks(ctx)
		}
		return nil
	case len(r.Labels.Classes()) > 0:
		labels, limit := r.Labels.Classes(), shownClasses
		slices.SortStableFunc(labels, func(a, b score.ClassScore) int { return cmp.Compare(b.Rows, a.Rows) })
		if v.whole {
			limit = listedClasses
		}
		v.Classes = scoresOf(labels, limit)
	case len(r.Classes.Classes()) > 0 && (v.Config.Task.Classes != nil || v.Config.Task.Target != nil):
		v.Confusion = confusionOf(&r.Classes)
		if v.twoLabels() {
			v.Binary = binaryOf(r, v.Config.Task.Classes)
		}
		if r.HasEntities() {
			v.Entities = entitiesOf(&r.Entities)
		}
		if v.whole {
			v.Classes = scoresOf(r.Classes.Classes(), listedClasses)
		}
	default:
		v.Lengths = lengthsOf(r, v.Config.Data.SourceUnits)
	}
	if v.Private {
		return nil
	}
	order := slices.Clone(r.Judged) // highest probability first
	slices.SortStableFunc(order, func(a, b judge.Judged) int { return cmp.Compare(b.Answer.LogProb, a.Answer.LogProb) })
	var right, wrong []judge.Judged
	for _, j := range order {
		if j.Right {
			right = append(right, j)
		} else {
			wrong = append(wrong, j)
		}
	}
	slices.Reverse(right) // lowest probability first
	groups, titles, limit := [][]judge.Judged{wrong}, []string{"Wrong answers, highest confidence first"}, shownExamples
	if v.whole && r.Units == "" && v.Confusion != nil {
		groups, titles = byClass(r.Classes.Classes(), wrong)
		limit = max(1, min(limit, listedMistakes/max(1, len(groups))))
		v.Unlisted = max(0, len(groups)-listedMistakes)
	} else if v.whole {
		limit = listedMistakes / 4
	}
	for i, group := range groups[:len(groups)-v.Unlisted] {
		examples, err := v.list(ctx, group, limit)
		if err != nil {
			return err
		}
		if examples != nil {
			v.Wrong = append(v.Wrong, mistakes{titles[i], examples})
		}
	}
	var err error
	v.Right, err = v.list(ctx, right, shownExamples)
	return err
}

// showRanks adds the rows whose source is nearer to another text than to the right one.
func (v *answers) showRanks(ctx context.Context) error {
	var wrong []judge.Judged
	for _, j := range v.Report.Judged {
		if !j.Right {
			right, _, _ := strings.Cut(j.References[0], "\t") // hard negatives follow
			j.References = []string{right}
			wrong = append(wrong, j)
		}
	}
	slices.SortStableFunc(wrong, func(a, b judge.Judged) int { return cmp.Compare(b.Edits, a.Edits) })
	examples, err := v.list(ctx, wrong, 2*shownExamples)
	if examples != nil {
		v.Wrong = []mistakes{{"Right texts with the worst ranks", examples}}
	}
	return err
}

// list returns the first examples, up to limit different ones, in the form that the page shows.
func (v *answers) list(ctx context.Context, judged []judge.Judged, limit int) (list []example, err error) {
	seen := map[example]bool{}
	for _, j := range judged {
		apart := j
		apart.Source = v.apart(j.Source)
		e := exampleOf(apart, v.Report.Units)
		if v.Config.Describe().Predict != nil {
			e.Sure = fmt.Sprint(1 + j.Edits)
		}
		if len(list) == limit || seen[e] {
			continue
		}
		seen[e] = true
		if err := v.explain(ctx, &e, j); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// apart returns a source with a visible mark between its two texts, if it is a pair.
func (v *answers) apart(source string) string {
	return strings.Join(v.Config.Task.Parts(source), " │ ")
}

// spread returns some examples at equal distances. If pairs is true, it chooses sources at equal distances and returns
// all examples of each.
func spread(examples []data.Example, pairs bool) []data.Example {
	var groups [][]data.Example
	number := map[string]int{} // index of each source's group
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

// exampleOf returns a judged example in the form that the page shows. It marks where a wrong answer differs from the
// right one only if an answer has several units: the letters of a label mean nothing.
func exampleOf(j judge.Judged, units tokenizer.Units) example {
	e := example{Source: shown(j.Source), Answered: j.Answer.Err == nil, Sure: percent(math.Exp(j.Answer.LogProb))}
	e.Found, e.Marked = entityList(j.Answer.Spans), entityList(j.Spans)
	if j.Right {
		e.Answer.Before = shown(j.Answer.Text)
		return e
	}
	if units == "" {
		e.Answer.Before, e.Want.Before = shown(j.Answer.Text), shown(j.References[0])
		return e
	}
	longest := -1
	for _, reference := range j.References { // show the reference that is most like the answer
		answer, want := differ(shown(j.Answer.Text), shown(reference), units)
		if same := len(answer.Before) + len(answer.After); same > longest {
			e.Answer, e.Want, longest = answer, want, same
		}
	}
	return e
}

// entityList returns the texts of entities with their labels.
func entityList(spans []model.Span) string {
	return shown(text.List(len(spans), len(spans), ", ", func(i int) string {
		if spans[i].Label == "" {
			return spans[i].Text
		}
		return spans[i].Text + " (" + spans[i].Label + ")"
	}))
}

// differ divides two texts into a common beginning, a middle, and a common end. It compares characters or tokens,
// depending on units.
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

// shown returns a text of the data for the page, on one line. It cuts long texts.
func shown(s string) string { return text.Cut(s, shownLength) }

// A length counts the right answers to sources within a range of lengths.
type length struct {
	Range    string
	N, Right int
	Share    float64 // fraction of right answers
	Edits    float64 // mean number of wrong symbols per source
}

// lengthsOf divides the sources into ranges of lengths.
func lengthsOf(r *judge.Report, units tokenizer.Units) []length {
	lengthOf := func(j judge.Judged) int {
		if units != "" && units != tokenizer.Characters {
			return len(strings.Fields(j.Source))
		}
		return utf8.RuneCountInString(j.Source)
	}
	order := slices.SortedStableFunc(slices.Values(r.Judged), func(a, b judge.Judged) int { return cmp.Compare(lengthOf(a), lengthOf(b)) })
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

// A confusion is a table of examples: a row for each right class, and a column for each answered class.
type confusion struct {
	Classes []string
	Rows    []confused
	Of      int // number of all classes; the table may have fewer
}

type confused struct {
	score.ClassScore
	Cells []confusionCell
}

type confusionCell struct {
	N     int
	Share float64 // fraction of the row's examples
	Right bool
	Title string
}

// confusionOf returns the table of all classes or, if there are many, of the classes with the most mistakes.
func confusionOf(c *score.Confusion) *confusion {
	classes := c.Classes()
	shownOf := slices.Clone(classes)
	wrong := func(s score.ClassScore) int { return s.Rows + s.Answers - 2*s.Right }
	slices.SortStableFunc(shownOf, func(a, b score.ClassScore) int {
		return cmp.Or(cmp.Compare(wrong(b), wrong(a)), cmp.Compare(b.Rows, a.Rows))
	})
	shownOf = shownOf[:min(len(shownOf), shownClasses)]
	slices.SortStableFunc(shownOf, func(a, b score.ClassScore) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), strings.Compare(a.Class, b.Class))
	})
	t := &confusion{Of: len(classes)}
	for _, s := range shownOf {
		t.Classes = append(t.Classes, text.Label(s.Class))
	}
	for _, right := range shownOf {
		row := confused{ClassScore: right}
		row.Class = text.Label(right.Class)
		for i, answered := range shownOf {
			n := c.Count(answered.Class, right.Class)
			row.Cells = append(row.Cells, confusionCell{
				N: n, Share: float64(n) / float64(max(1, right.Rows)), Right: answered.Class == right.Class,
				Title: fmt.Sprintf("right class %s, answered %s: %d", row.Class, t.Classes[i], n),
			})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// entitiesOf returns the scores of the types with the most entities, and of all entities.
func entitiesOf(e *score.Entities) []score.ClassScore {
	total := e.Total()
	total.Class = "all"
	return append(scoresOf(e.Types(), shownClasses), total)
}

// scoresOf returns the scores of the first classes, up to limit, with names for a table.
func scoresOf(classes []score.ClassScore, limit int) []score.ClassScore {
	classes = classes[:min(len(classes), limit)]
	for i := range classes {
		classes[i].Class = text.Label(classes[i].Class)
	}
	return classes
}

// answers is the data of the template answers.
type answers struct {
	*model.Model
	examples []data.Example // for validation
	Private  bool
	whole    bool   // whether the page is about all answers of an evaluation
	Smoothed string // what label smoothing does to confidences; empty if there is none

	Report    *judge.Report
	Some      bool // the Report has only some of the examples
	Wrong     []mistakes
	Unlisted  int // number of classes whose mistakes aren't in Wrong
	Right     []example
	Whys      []why // explanations of examples in Wrong and Right
	Confusion *confusion
	Binary    *binary            // for two labels
	Classes   []score.ClassScore // for the page of an evaluation
	Entities  []score.ClassScore // by type, and of all types; nil if the tags have no entities
	Lengths   []length
	Scatter   *scatter  // for numbers
	Far       []distant // for numbers
	Sample    string

	Attended  string        // the input and its answer
	Attention template.HTML // attention of the model in this answer; empty if there is none
}

// mistakes are wrong answers under a heading.
type mistakes struct {
	Title    string
	Examples []example
}

// byClass divides wrong answers, in their order, by their right class, and returns the classes with the most mistakes
// first.
func byClass(classes []score.ClassScore, wrong []judge.Judged) (groups [][]judge.Judged, titles []string) {
	found := map[string][]judge.Judged{}
	for _, j := range wrong {
		found[j.References[0]] = append(found[j.References[0]], j)
	}
	order := slices.Clone(classes)
	slices.SortStableFunc(order, func(a, b score.ClassScore) int { return len(found[b.Class]) - len(found[a.Class]) })
	for _, c := range order {
		if js := found[c.Class]; js != nil {
			groups = append(groups, js)
			titles = append(titles, fmt.Sprintf("%s: %d of %s wrong", text.Label(c.Class), len(js), text.Count(c.Rows, "row")))
		}
	}
	return groups, titles
}

// Limits for the page of an evaluation.
const (
	listedMistakes = 160 // of all classes together
	listedClasses  = 400
)
