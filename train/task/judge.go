package task

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/train/score"
)

// A Report is how well a model's answers are those of examples. String has it in words.
type Report struct {
	Units tokenizer.Units // of the symbols that answers are made of

	// Judged are the sources of pairs, each once with all its answers, or the examples of labels and tags, in order.
	Judged []Judged
	Right  int // of Judged

	// What the model can't know: sources that it can't answer, sources and references with symbols or labels that
	// training never saw, and references that are longer than its answers may be.
	Unanswered, UnknownSources, UnknownReferences, LongReferences int

	// Of pairs. The Errors are of symbols, but of words where a model writes byte pairs. BLEU is of symbols where those
	// are tokens.
	Errors score.ErrorRate[string]
	ChrF   score.CHRF
	BLEU   score.BLEU

	Classes score.Confusion // of labels, or of each tag; what isn't answered counts as answered with ""

	kind kind
}

// A Judged is a source with what a model makes of it.
type Judged struct {
	Source     string
	References []string // right answers
	Answer     Answer   // without Text where the model has none
	Right      bool     // the answer is one of the references
	Edits      int      // from the answer to the nearest reference; of tags, those that are wrong
}

// judgeBatch is how many sources Judge has answered together.
const judgeBatch = 1 << 13

// Judge answers the sources of examples and compares the answers with theirs. Of pairs, the answers of several examples
// of one source are all right. A source that the model can't answer counts as answered with nothing, which is wrong, as
// is any answer where the references have symbols that the model doesn't know, or are longer than its answers may be.
// It is an error if there are no examples, or of a text model.
func (m *Model) Judge(ctx context.Context, examples []data.Example, o PredictOptions) (*Report, error) {
	kind := kindOf(m.Config.Task.Kind)
	if kind.about().Columns == nil || len(examples) == 0 {
		return nil, fmt.Errorf("a model that answers rows is judged by at least one example, got %d for one of kind %s", len(examples), m.Config.Task.Kind)
	}
	r := &Report{kind: kind, Units: m.Config.Data.TargetUnits}
	if r.Units == "" {
		r.Units = tokenizer.Characters
	}
	if r.Units == tokenizer.Tokens {
		r.BLEU.Split = strings.Fields
	}
	r.gather(examples)
	for part := range slices.Chunk(r.Judged, judgeBatch) {
		inputs := make([]string, len(part))
		for i, j := range part {
			inputs[i] = j.Source
		}
		answers, err := m.PredictAll(ctx, inputs, o)
		if err != nil {
			return nil, err
		}
		for i := range part {
			part[i].Answer = answers[i]
			m.judge(r, &part[i])
		}
	}
	return r, nil
}

// gather sets what is to be judged.
func (r *Report) gather(examples []data.Example) {
	at := map[string]int{} // of the sources of pairs
	for _, e := range examples {
		i, ok := at[e.Source]
		if !r.kind.about().Sequences || !ok {
			at[e.Source] = len(r.Judged)
			r.Judged = append(r.Judged, Judged{Source: e.Source, References: []string{e.Answer}})
		} else if j := &r.Judged[i]; !slices.Contains(j.References, e.Answer) {
			j.References = append(j.References, e.Answer)
		}
	}
}

// judge judges an answer.
func (m *Model) judge(r *Report, j *Judged) {
	_, target := m.coder.Tokenizers()
	kind := r.kind.about()
	if j.Answer.Unknown {
		r.UnknownSources++
	}
	answer := []string{} // of symbols
	if j.Answer.Err != nil {
		r.Unanswered++
	} else {
		answer = r.symbols(j.Answer.Text)
	}
	var references [][]string
	for _, text := range j.References {
		known := slices.Contains(m.Config.Task.Classes, text)
		if kind.AnswerUnits {
			n, unknown, _ := encoded(target, text)
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
	r.kind.score(r, j, answer, references)
}

// symbols returns what is counted in an answer: a label is one.
func (r *Report) symbols(answer string) []string {
	switch {
	case !r.kind.about().AnswerUnits:
		return []string{answer}
	case r.Units == tokenizer.Characters:
		return strings.Split(answer, "")
	}
	return strings.Fields(answer)
}

// String returns some lines of text, which say what each number is of.
func (r *Report) String() string {
	var s strings.Builder
	r.kind.write(r, &s)
	var beyond []string
	for _, b := range []struct {
		n         int
		one, many string
	}{
		{r.Unanswered, "source can't be answered", "sources can't be answered"},
		{r.UnknownSources, "source has symbols that training never saw", "sources have symbols that training never saw"},
		{r.UnknownReferences, "reference has what training never saw", "references have what training never saw"},
		{r.LongReferences, "reference is longer than answers may be", "references are longer than answers may be"},
	} {
		if b.n == 1 {
			beyond = append(beyond, "1 "+b.one)
		} else if b.n > 1 {
			beyond = append(beyond, fmt.Sprintf("%d %s", b.n, b.many))
		}
	}
	if beyond != nil {
		fmt.Fprintf(&s, "Beyond the model: %s. What can't come out right counts as wrong.\n", strings.Join(beyond, "; "))
	}
	return s.String()
}

// mostClasses is how many classes String shows.
const mostClasses = 20

// writeClasses writes the accuracy of labels, or of tags, a table of the classes, of the commonest if there are many,
// and one of how often each of these was answered for each.
func (r *Report) writeClasses(w io.Writer, what string) {
	all := r.Classes.Classes()
	shown := slices.Clone(all)
	slices.SortStableFunc(shown, func(a, b score.ClassScore) int { return cmp.Compare(b.Rows, a.Rows) })
	shown = shown[:min(len(shown), mostClasses)]
	mean := r.Classes.Macro()
	fmt.Fprintf(w, "Accuracy: %.4f (%d of %d %s right)\n", r.Classes.Accuracy(), mean.Right, mean.Rows, what)
	mean.Class = fmt.Sprintf("mean of %d", len(all))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tprecision\trecall\tF1\tright\tanswered\tof\t")
	for _, c := range append(slices.Clone(shown), mean) {
		fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%.4f\t%d\t%d\t%d\t\n", className(c.Class), c.Precision, c.Recall, c.F1, c.Right, c.Answers, c.Rows)
	}
	t.Flush()
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

// className returns a class as a table shows it.
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

// WriteAnswers writes what was judged, a row each: the source, the answer, whether it is right, its edits, its log
// probability and the references. The separator of fields is ',' for CSV, which quotes them, or '\t' for TSV, which
// doesn't: there a tab in a text is written as \t, an end of line as \n or \r, and a backslash as \\.
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
	err := put([]string{"source", "answer", "right", "edits", "log_prob", "reference"})
	for _, j := range r.Judged {
		score := ""
		if j.Answer.Err == nil {
			score = fmt.Sprintf("%.4f", math.Round(1e4*j.Answer.LogProb)/1e4+0) // never -0.0000
		}
		fields := []string{j.Source, j.Answer.Text, strconv.FormatBool(j.Right), strconv.Itoa(j.Edits), score}
		err = cmp.Or(err, put(append(fields, j.References...)))
	}
	quoted.Flush()
	return cmp.Or(err, quoted.Error(), out.Flush())
}
