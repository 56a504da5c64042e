package task

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// classification gives each source one label.
type classification struct{ common }

var classificationKind = classification{common{facts{
	name: data.KindClassification, help: "the label of each text in a file",
	format: &rows.Format{Labels: true, Columns: []table.Column{
		textColumn,
		{Role: "label", Names: labelNames, One: true},
	}},
	pairs: true, classes: true, linear: linearClasses{}, small: true,
}}}

// labelNames are the names of a column of labels.
var labelNames = []string{"label", "class", "category", "sentiment", "target", "labels", "tags", "categories"}

const (
	maxClasses   = 10_000 // maximum number of different labels
	mostDistinct = 20     // maximum number of different labels, if most labels occur only once or twice
)

// read compares all labels without regard to how they are written: see folded. Its note lists labels with several
// spellings. If MergeLabels is set, read merges them. It returns an error if nothing says whether the first row of a
// table is a header, and the label of this row occurs neither in another row nor in the rule's Classes, or if rows seem
// to have several labels.
func (classification) read(c *Config, tables []*table.Table) (notes []string, err error) {
	labels, firsts, rows := map[string]int{}, map[string]int{}, 0 // numbers of rows and of first rows
	for _, t := range tables {
		for i := range t.Len() {
			labels[t.Field(i, 1)]++
		}
		firsts[t.Field(0, 1)]++
		rows += t.Len()
	}
	spellings, known, classes := map[string][]count{}, map[string]bool{}, map[string]string{}
	for label, n := range labels {
		key := folded(label)
		spellings[key] = append(spellings[key], count{label, n})
		known[key] = known[key] || n > firsts[label]
	}
	for _, class := range c.Task.Classes {
		key := folded(class)
		known[key], classes[key] = true, class
	}
	if c.Task.Classes == nil {
		if joined, separator := severalLabels(slices.Sorted(maps.Keys(labels))); joined != "" {
			return nil, setting.Errorf("data file %q: rows have several labels, such as %.60q: to learn them all, set %s to %q, which stands between them; for one of them, make a file with the labels yes and no",
				tables[0].Name, joined, setting.Path("task.separator"), separator)
		}
		if freeText(len(spellings), rows) { // rows returns an error
			return nil, nil
		}
	}
	for _, t := range tables {
		if label := t.Field(0, 1); t.Guessed && !known[folded(label)] {
			return nil, setting.Errorf("data file %q: the label of the first row, %.60q, occurs in no other row: set %s yes if this row is a header, or %s no if it isn't",
				t.Name, label, setting.Path("data.header"), setting.Path("data.header"))
		}
	}
	var alike [][]count
	merged := map[string]string{}
	for key, some := range spellings {
		slices.SortFunc(some, func(a, b count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Label, b.Label)) })
		label, ok := classes[key]
		if !ok {
			label = mostFrequent(some)
		}
		for _, spelling := range some {
			if spelling.Label != label {
				merged[spelling.Label] = label
			}
		}
		if len(some) > 1 {
			alike = append(alike, some)
		}
	}
	name, advice := "alike", "; --merge-labels merges them"
	if c.Data.MergeLabels {
		name, advice = "merged", ""
		for _, t := range tables {
			t.Replace(1, merged)
		}
	}
	if alike != nil {
		slices.SortFunc(alike, func(a, b []count) int { return cmp.Compare(a[0].Label, b[0].Label) })
		groups := text.List(len(alike), mostLabels, "; ", func(i int) string {
			return text.List(len(alike[i]), len(alike[i]), ", ", func(j int) string { return fmt.Sprintf("%s %d", spelled(alike[i][j].Label), alike[i][j].N) })
		})
		notes = append(notes, fmt.Sprintf("%s: %s (counts of all rows; the labels differ only in how they are written%s)", name, groups, advice))
	}
	return notes, nil
}

// spelled shows a label, with escapes if it has characters that can't be told from others.
func spelled(label string) string {
	if norm.NFC.IsNormalString(label) && !strings.ContainsAny(label, invisible) {
		return shown(label)
	}
	return strconv.QuoteToASCII(label)
}

// mostFrequent returns the most frequent spelling without surrounding spaces.
func mostFrequent(spellings []count) string {
	counts := map[string]int{}
	for _, s := range spellings {
		counts[strings.TrimSpace(s.Label)] += s.N
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
}

// folded returns the same string for labels that differ only in how they are written: in case, in surrounding spaces,
// in Unicode's form of a letter with a mark, in invisible characters, or in a whole number's ".0", which pandas writes
// in a column with a gap.
func folded(label string) string {
	label = strings.Map(func(r rune) rune {
		if strings.ContainsRune(invisible, r) {
			return -1
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, norm.NFC.String(strings.TrimSpace(label)))
	if whole, zeros, ok := strings.Cut(label, "."); ok && whole != "" && zeros != "" && strings.Trim(zeros, "0") == "" && strings.Trim(strings.TrimPrefix(whole, "-"), "0123456789") == "" {
		return whole
	}
	return label
}

// invisible has the characters without a width: joiners, the soft hyphen and the byte-order mark.
const invisible = "\u00ad\u200b\u200c\u200d\u2060\ufeff"

// severalLabels returns one of the labels, and what stands between its parts, if they seem to be several in one: if a
// separator is in most labels and the parts recur, or if two labels are the same words in another order. Otherwise it
// returns "".
func severalLabels(labels []string) (joined, separator string) {
	for _, separator := range []string{"|", ";", ",", " "} {
		parts, orders, with, joined := map[string]bool{}, map[string]string{}, 0, ""
		for _, label := range labels {
			some := strings.Split(label, separator)
			for i := range some {
				some[i] = strings.TrimSpace(some[i])
				parts[some[i]] = true
			}
			if len(some) == 1 {
				continue
			}
			with, joined = with+1, label
			slices.Sort(some)
			key := strings.Join(some, separator)
			if other, ok := orders[key]; ok && len(slices.Compact(some)) > 1 && strings.TrimSpace(other) != strings.TrimSpace(label) {
				return label, separator
			}
			orders[key] = label
		}
		if separator != " " && len(labels) > 2 && 2*with > len(labels) && len(parts) < len(labels) {
			return joined, separator
		}
	}
	return "", ""
}

// freeText reports whether labels are so different that they are probably not labels.
func freeText(labels, rows int) bool { return labels > mostDistinct && 2*labels > rows }

// rows sets the rule's Classes to the different labels in the file.
func (classification) rows(c *Config, s *rows.Set) error {
	if c.Task.Classes != nil {
		return nil
	}
	labels := map[string]bool{}
	for _, part := range []rows.Part{s.Train, s.Validation} {
		for label := range part.Answers() {
			labels[label] = true
		}
	}
	n, rows := len(labels), s.Train.Len()+s.Validation.Len()
	if freeText(n, rows) {
		return setting.Errorf("data file %q has %d different labels in %d rows, in its columns %s: set %s to the columns of texts and labels, or use %s seq2seq if answers are free text", c.Data.File, n, rows, s.Description.Columns, setting.Path("data.columns"), setting.Path("task"))
	}
	if n < 2 || n > maxClasses {
		return setting.Errorf("data file %q has %s, but needs 2 to %d different labels: set %s to the columns of texts and labels, or use %s seq2seq if answers are free text", c.Data.File, text.Count(n, "label"), maxClasses, setting.Path("data.columns"), setting.Path("task"))
	}
	c.Task.Classes = slices.Sorted(maps.Keys(labels))
	return nil
}

func (k classification) learner(m *model.Model, c *Config, weights []float64) learner {
	l := k.labels(m, c, weights)
	if c.FromRows() {
		l.more = append(l.more, one(train.MacroF1))
	}
	if _, class, ok := metrics.OfClass(c.Training.Stopping.Monitor); ok {
		l.more = append(l.more, func(b *layers.Build, logits, targets *G.Node) ([]train.Metric, error) {
			computed, err := train.ClassMetrics(b, logits, targets, slices.Index(c.Task.Classes, class))
			for i := range computed {
				computed[i].Name += "[" + class + "]"
			}
			return computed, err
		})
	}
	return l
}
