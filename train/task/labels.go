package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task/judge"
)

// A count is the number of occurrences of a label.
type count struct {
	Label string
	N     int
}

// mostLabels is the greatest number of labels that a description lists.
const mostLabels = 12

// shown returns a label. It adds quotes if the label has commas or control characters, has spaces at its ends, or ends
// in a digit, because a count may follow it.
func shown(label string) string {
	last, _ := utf8.DecodeLastRuneInString(label)
	if strings.TrimSpace(label) != label || unicode.IsDigit(last) || strings.ContainsFunc(label, func(r rune) bool { return r == ',' || unicode.IsControl(r) }) {
		return strconv.Quote(label)
	}
	return label
}

// fewest lists labels with their numbers of rows, the rarest first.
func fewest(counts []count) string {
	slices.SortStableFunc(counts, func(a, b count) int { return cmp.Compare(a.N, b.N) })
	return text.List(len(counts), mostLabels, ", ", func(i int) string { return fmt.Sprintf("%s %d", shown(counts[i].Label), counts[i].N) })
}

// commonest lists labels, the most frequent first, with their shares of n. The unit stands after a share.
func commonest(counts []count, n int, unit string) string {
	slices.SortStableFunc(counts, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	return text.List(len(counts), mostLabels, ", ", func(i int) string {
		return fmt.Sprintf("%s %d (%.1f %%%s)", shown(counts[i].Label), counts[i].N, 100*float64(counts[i].N)/float64(max(n, 1)), unit)
	})
}

// labelCounts counts the labels or tags of rows.
type labelCounts struct {
	names     []string  // the labels or tags
	validates []int     // their numbers in the validation rows
	total     int       // number of validation rows or, for tagging, of their tags
	best      int       // index of the most frequent one in the training rows
	weights   []float64 // their weights in the loss; nil means 1 for each
}

// countLabels counts the labels or tags of the training and the validation rows. It adds the counts to the description,
// with the accuracy of always answering the commonest one. If the configuration asks for class weights, it sets them.
// If the run begins and nothing says what to monitor, it chooses accuracy or macro F1.
func countLabels(k facts, c *Config, s *rows.Set, begins bool) *labelCounts {
	l := &labelCounts{names: slices.Clone(c.Task.Classes)}
	classes := c.classesOf()
	if target := c.Task.Target; target != nil {
		for id := range target.Len() {
			name, _ := target.Decode([]int{id})
			l.names = append(l.names, name)
		}
	}
	counted := func(part rows.Part) (counts []int, total int) {
		counts = make([]int, len(l.names))
		for answer := range part.Answers() {
			for _, id := range classes(answer) {
				counts[id]++
				total++
			}
		}
		return counts, total
	}
	trains, total := counted(s.Train)
	l.validates, l.total = counted(s.Validation)
	unseen := 0 // validation labels that no training row has
	var counts []count
	for i, n := range trains {
		if n > trains[l.best] {
			l.best = i
		}
		if n > 0 {
			counts = append(counts, count{l.names[i], n})
		} else {
			unseen += l.validates[i]
		}
	}
	unit, d := judge.KindOf(&c.Config).Unit, s.Description
	d.Notes = append(d.Notes, fmt.Sprintf("training %s: %s", unit, commonest(counts, total, "")))
	if unseen > 0 && c.Task.Target == nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("unknown: %s with a label that no training row has", text.Count(unseen, "validation row")))
	}
	if l.total > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("most frequent: always answering %s is right for %.1f %% of the validation %s",
			shown(l.names[l.best]), 100*float64(l.validates[l.best])/float64(l.total), unit))
		var few []count // labels with few validation rows, except for labels that no training row has
		for i, n := range l.validates {
			if n < fewRows && trains[i] > 0 {
				few = append(few, count{l.names[i], n})
			}
		}
		if few != nil {
			d.Warnings = append(d.Warnings, fmt.Sprintf("few validation %s: %s (with fewer than %d, scores per %s are rough)", unit, fewest(few), fewRows, strings.TrimSuffix(unit, "s")))
		}
	}
	if stopping := &c.Training.Stopping; begins && k.format.Labels && l.total > 0 && stopping.Monitor == "" && stopping.Mode == "" {
		stopping.Monitor, stopping.Mode = "val_accuracy", "max"
		if why := rare(trains); why != "" {
			stopping.Monitor = "val_macro_f1"
			d.Warnings = append(d.Warnings, "monitored: macro F1, because "+why)
		}
	}
	if c.Training.ClassWeights != "" {
		l.weights = balanced(trains)
	}
	return l
}

// fewRows is the number of validation rows below which a description warns that the scores of a label are rough. With
// 20 rows, the standard error of a recall of 80 % is 9 points.
const fewRows = 20

// always returns the most frequent label, and the validation value that a metric has if it is always answered: see
// Task.MostFrequent. The counts may be nil.
func (l *labelCounts) always(metric string) (label string, value float64, known bool) {
	if l == nil || l.total == 0 {
		return "", 0, false
	}
	label, right, total := l.names[l.best], float64(l.validates[l.best]), float64(l.total)
	share, f1, labels := right/total, 2*right/(total+right), 0 // labels with answers or rows
	for i, n := range l.validates {
		if n > 0 || i == l.best {
			labels++
		}
	}
	name, class, ofClass := metrics.OfClass(metric)
	switch {
	case metric == "accuracy":
		return label, share, true
	case metric == "macro_f1":
		return label, f1 / float64(labels), true
	case !ofClass:
		return label, 0, false
	case name == "average_precision": // all rows are alike
		return label, float64(l.validates[slices.Index(l.names, class)]) / total, true
	case class != label || right == 0:
		return label, 0, true
	}
	return label, map[string]float64{"precision": share, "recall": 1, "f1": f1}[name], true
}

// rare returns the reason in words if labels with these numbers of training rows include rare ones, so that accuracy
// says little about them, and otherwise "". Labels without rows don't count.
func rare(trains []int) string {
	rows, labels, fewest, greatest := 0, 0, math.MaxInt, 0
	for _, n := range trains {
		if n > 0 {
			rows, labels, fewest, greatest = rows+n, labels+1, min(fewest, n), max(greatest, n)
		}
	}
	switch {
	case 10*greatest > 9*rows:
		return "the most frequent label has more than 90 % of the rows"
	case 10*labels*fewest < rows:
		return "the rarest label has less than a tenth of an even share of the rows"
	}
	return ""
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
