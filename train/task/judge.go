package task

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/oov"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
)

// judgeBatch is the number of sources per call of PredictAll in Judge.
const judgeBatch = 1 << 13

// Judge answers the sources of the examples and compares the model's answers with the examples' answers, the
// references. For seq2seq, if several examples have the same source, each of their answers is right. If the model can't
// answer a source, the empty answer counts, which is wrong. An answer is also wrong if all references have symbols that
// the model doesn't know. Judge returns an error if there are no examples or if the model's kind is text.
//
// For embed, Judge searches for the positive of each source among the texts of all answers. The texts with the most
// similar vectors come first. If each answer is one text and a score, it compares the similarities with the scores.
func Judge(ctx context.Context, m *model.Model, examples []data.Example, o model.PredictOptions) (*Report, error) {
	kind := kindOf(m.Config.Task.Kind)
	if !kind.about().Rows || len(examples) == 0 {
		return nil, fmt.Errorf("Judge needs at least one example and a model that answers rows, got %d examples and a model of kind %s", len(examples), m.Config.Task.Kind)
	}
	if kind.about().Embeds {
		r := newReport(m, examples)
		return r, r.judgeVectors(ctx, m)
	}
	r, err := judgeAnswers(m, examples, func(sources []string) ([]model.Answer, error) {
		return m.PredictAll(ctx, sources, o)
	})
	if err != nil {
		return nil, err
	}
	return r, r.besideBaseline(ctx, m, examples)
}

// judgeAnswers compares the answers that a function returns with the examples' answers.
func judgeAnswers(m *model.Model, examples []data.Example, answer func(sources []string) ([]model.Answer, error)) (*Report, error) {
	r := newReport(m, examples)
	for part := range slices.Chunk(r.Judged, judgeBatch) {
		answers, err := answer(sourcesOf(part))
		if err != nil {
			return nil, err
		}
		r.judgeAll(m, part, answers)
	}
	return r, nil
}

func sourcesOf(judged []Judged) []string {
	sources := make([]string, len(judged))
	for i, j := range judged {
		sources[i] = j.Source
	}
	return sources
}

// judgeAll sets the answers of a part of the judged rows, and adds them to the report.
func (r *Report) judgeAll(m *model.Model, part []Judged, answers []model.Answer) {
	for i := range part {
		part[i].Answer = answers[i]
		r.judge(m, &part[i])
	}
}

// besideBaseline sets what a report says about the baseline.
func (r *Report) besideBaseline(ctx context.Context, m *model.Model, examples []data.Example) error {
	baseline, err := baselineReport(ctx, m, examples)
	if linear, _ := m.Linear(); baseline != nil {
		r.about, r.Baseline, r.chance = linear.About(), r.kind.values(baseline), new(r.chanceOf(baseline))
	}
	return err
}

// newReport returns a report on the examples, without answers.
func newReport(m *model.Model, examples []data.Example) *Report {
	kind := kindOf(m.Config.Task.Kind)
	r := &Report{kind: kind, metrics: kind.metrics(configOf(m)), Units: cmp.Or(m.Config.Data.TargetUnits, tokenizer.Characters)}
	if r.Units == tokenizer.Tokens {
		r.BLEU.Split = strings.Fields
	}
	r.gather(examples)
	return r
}

// gather sets Judged from the examples, without answers.
func (r *Report) gather(examples []data.Example) {
	r.Judged = make([]Judged, 0, len(examples)) // growing would take more memory
	indices := map[string]int{}                 // for seq2seq: index of each source in Judged
	for _, e := range examples {
		i, ok := indices[e.Source]
		if !ok {
			if r.kind.about().Sequences {
				indices[e.Source] = len(r.Judged)
			}
			r.Judged = append(r.Judged, Judged{Source: e.Source, References: []string{e.Answer}})
		} else if j := &r.Judged[i]; !slices.Contains(j.References, e.Answer) {
			j.References = append(j.References, e.Answer)
		}
	}
}

// judge adds one answer to the report.
func (r *Report) judge(m *model.Model, j *Judged) {
	if j.Answer.Unknown {
		r.UnknownSources++
	}
	if j.Answer.Cut {
		r.CutSources++
	}
	if j.Answer.Err != nil {
		r.Unanswered++
	}
	r.kind.judge(m, r, j)
}

// compare says whether an answer equals one of its references and adds this to the report. It returns the answer and
// the references, split into symbols.
func (r *Report) compare(m *model.Model, j *Judged) (answer []string, references [][]string) {
	_, target := m.Coder().Tokenizers()
	kind := r.kind.about()
	answer = []string{}
	if j.Answer.Err == nil {
		answer = r.symbols(j.Answer.Text)
	}
	for _, text := range j.References {
		known := slices.Contains(m.Config.Task.Classes, text)
		if kind.AnswerUnits {
			n, some, _ := oov.Count(target, text)
			unknown := some > 0
			if known = !unknown; kind.Sequences && n > m.Config.Task.MaxAnswer {
				r.LongReferences++
			}
		}
		if !known {
			r.UnknownReferences++
		}
		reference := r.symbols(text)
		references = append(references, reference)
		j.Right = j.Right || known && slices.Equal(answer, reference)
	}
	if j.Right {
		r.Right++
	}
	return answer, references
}

// countClasses counts the symbols of an answer per class, and sets the answer's edits.
func (r *Report) countClasses(j *Judged, answer, reference []string) {
	for i, symbol := range reference {
		got := ""
		if i < len(answer) {
			got = answer[i]
		}
		if r.Classes.Add(got, symbol); got != symbol {
			j.Edits++
		}
	}
}

// symbols splits an answer into the units that are counted. A label is one unit.
func (r *Report) symbols(answer string) []string {
	switch {
	case !r.kind.about().AnswerUnits:
		return []string{answer}
	case r.Units == tokenizer.Characters:
		return strings.Split(answer, "")
	}
	return strings.Fields(answer)
}

// String returns the scores as lines of text, each with its name.
func (r *Report) String() string {
	var s strings.Builder
	r.kind.write(r, &s)
	s.WriteString(valuesText("Baseline: "+r.about, r.metrics, r.Baseline))
	var beyond []string
	for _, b := range []struct {
		n          int
		noun, what string
	}{
		{r.Unanswered, "source", "without an answer"},
		{r.CutSources, "source", "cut to the length of the model's context"},
		{r.UnknownSources, "source", "with letters, or with mostly words, that training never saw"},
		{r.UnknownReferences, "reference", "with symbols or labels that training never saw"},
		{r.LongReferences, "reference", "longer than any answer of the model"},
	} {
		if b.n > 0 {
			beyond = append(beyond, text.Count(b.n, b.noun)+" "+b.what)
		}
	}
	if beyond != nil {
		counts := ""
		switch wrong := r.Unanswered > 0 || r.UnknownReferences > 0 || r.LongReferences > 0; {
		case wrong && r.kind.about().Right != "":
			counts = " An answer that can't be right counts as wrong."
		case r.Unanswered > 0:
			counts = " A row without an answer doesn't count."
		}
		fmt.Fprintf(&s, "Beyond the model: %s.%s\n", strings.Join(beyond, "; "), counts)
	}
	return s.String()
}

// mostClasses is the greatest number of classes that String shows.
const mostClasses = 20

// writeClasses writes the accuracy of labels or tags, a table of scores per class, and a table of how often each class
// was answered for each right class. If there are many classes, the tables have only the commonest.
func (r *Report) writeClasses(w io.Writer, what string) {
	classes := r.Classes.Classes()
	shown := slices.Clone(classes)
	slices.SortStableFunc(shown, func(a, b score.ClassScore) int { return cmp.Compare(b.Rows, a.Rows) })
	shown = shown[:min(len(shown), mostClasses)]
	mean := r.Classes.Macro()
	fmt.Fprintf(w, "Accuracy: %.4f (%d of %d %s right)\n", r.Classes.Accuracy(), mean.Right, mean.Rows, what)
	mean.Class = fmt.Sprintf("mean of %d", len(classes))
	writeScores(w, append(slices.Clone(shown), mean))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "right ↓, answered →\t")
	for i := range shown {
		fmt.Fprintf(t, "%d\t", i+1)
	}
	fmt.Fprintln(t)
	for i, right := range shown {
		fmt.Fprintf(t, "%s %d\t", className(right.Class), i+1)
		for _, answered := range shown {
			fmt.Fprintf(t, "%d\t", r.Classes.Count(answered.Class, right.Class))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// writeScores writes a table of scores.
func writeScores(w io.Writer, scores []score.ClassScore) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tprecision\trecall\tF1\tright\tanswered\ttotal\t")
	for _, c := range scores {
		fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%.4f\t%d\t%d\t%d\t\n", className(c.Class), c.Precision, c.Recall, c.F1, c.Right, c.Answers, c.Rows)
	}
	t.Flush()
}

// HasEntities reports whether the right tags are made for entities, such as B-PER, I-PER and O.
func (r *Report) HasEntities() bool { return r.Entities.Others == 0 && r.Entities.Total().Rows > 0 }

// className returns the text for a class in a table.
func className(class string) string {
	if class == "" {
		return "(none)"
	}
	if r := []rune(class); len(r) > 24 {
		class = string(r[:23]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, class)
}

// WriteAnswers writes one row for each element of Judged: the source, the answer, whether it is right, its edits, its
// log probability and the references. The separator is ',' for CSV, with quotes, or '\t' for TSV, without quotes. In
// TSV, a tab in a field is written as \t, an end of line as \n or \r, and a backslash as \\.
func (r *Report) WriteAnswers(w io.Writer, separator rune) error {
	out := bufio.NewWriter(w)
	quoted := csv.NewWriter(out)
	quoted.Comma = separator
	put := quoted.Write
	if separator == '\t' { // TSV has no quotes
		escape := strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
		put = func(fields []string) error {
			for i, field := range fields {
				fields[i] = escape.Replace(field)
			}
			_, err := fmt.Fprintln(out, strings.Join(fields, "\t"))
			return err
		}
	}
	names, _ := r.kind.details(Judged{})
	err := put(slices.Concat([]string{"source", "answer"}, names, []string{"reference"}))
	for _, j := range r.Judged {
		_, values := r.kind.details(j)
		err = cmp.Or(err, put(slices.Concat([]string{j.Source, j.Answer.Text}, values, j.References)))
	}
	quoted.Flush()
	return cmp.Or(err, quoted.Error(), out.Flush())
}
