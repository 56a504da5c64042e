package judge

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
)

// String returns the scores as lines of text, each with its name.
func (r *Report) String() string {
	var s strings.Builder
	r.kind.write(r, &s)
	s.WriteString(metrics.Text("Baseline: "+r.about, r.kind.Metrics, r.Baseline))
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
		case wrong && r.kind.Right != "":
			counts = " An answer that can't be right counts as wrong."
		case r.Unanswered > 0:
			counts = " A row without an answer doesn't count."
		}
		fmt.Fprintf(&s, "Beyond the model: %s.%s\n", strings.Join(beyond, "; "), counts)
	}
	return s.String()
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
