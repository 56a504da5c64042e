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

	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/text"
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

// classesOf returns a function that returns the class of the label of a row, or the class of each of its tags.
func (c *Config) classesOf() func(answer string) []int {
	if target := c.Task.Target; target != nil { // measuring the rows would have returned errors of Encode
		return func(answer string) []int { ids, _ := target.Encode(answer); return ids }
	}
	numbers := map[string]int{}
	for i, name := range c.Task.Classes {
		numbers[name] = i
	}
	return func(answer string) []int { return []int{numbers[answer]} }
}

// countClasses counts the labels or tags of the training and the validation rows. It adds the counts to the
// description, with the accuracy of always answering the commonest one. If the configuration asks for class weights, it
// sets them. If the run begins and nothing says what to monitor, it chooses accuracy or macro F1.
func (s *rowSet) countClasses(c *Config, begins bool) {
	names, classes := slices.Clone(c.Task.Classes), c.classesOf()
	if target := c.Task.Target; target != nil {
		for id := range target.Len() {
			name, _ := target.Decode([]int{id})
			names = append(names, name)
		}
	}
	counted := func(part rows.Part) (counts []int, total int) {
		counts = make([]int, len(names))
		for answer := range part.Answers() {
			for _, id := range classes(answer) {
				counts[id]++
				total++
			}
		}
		return counts, total
	}
	trains, total := counted(s.Train)
	var validates []int
	validates, s.total = counted(s.Validation)
	best, unseen := 0, 0 // the commonest class, and validation labels that no training row has
	var counts []count
	for i, n := range trains {
		if n > trains[best] {
			best = i
		}
		if n > 0 {
			counts = append(counts, count{names[i], n})
		} else {
			unseen += validates[i]
		}
	}
	slices.SortStableFunc(counts, func(a, b count) int { return cmp.Compare(b.N, a.N) })
	s.names, s.validates, s.best = names, validates, best
	unit, d := c.Kind().Unit, s.Description
	d.Notes = append(d.Notes, fmt.Sprintf("training %s: %s", unit, text.List(len(counts), mostLabels, ", ", func(i int) string {
		return fmt.Sprintf("%s %d (%.1f %%)", shown(counts[i].Label), counts[i].N, 100*float64(counts[i].N)/float64(total))
	})))
	if unseen > 0 && c.Task.Target == nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("unknown: %s with a label that no training row has", text.Count(unseen, "validation row")))
	}
	if s.total > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("most frequent: always answering %s is right for %.1f %% of the validation %s",
			shown(counts[0].Label), 100*float64(validates[best])/float64(s.total), unit))
	}
	if s.total > 0 {
		s.warnFew(names, trains, validates, unit)
	}
	if stopping := &c.Training.Stopping; begins && c.labelled() && s.total > 0 && stopping.Monitor == "" && stopping.Mode == "" {
		stopping.Monitor, stopping.Mode = "val_accuracy", "max"
		if why := rare(trains); why != "" {
			stopping.Monitor = "val_macro_f1"
			d.Warnings = append(d.Warnings, "monitored: macro F1, because "+why)
		}
	}
	if c.Training.ClassWeights != "" {
		s.classWeights = balanced(trains)
	}
}

// fewRows is the number of validation rows below which a description warns that the scores of a label are rough. With
// 20 rows, the standard error of a recall of 80 % is 9 points.
const fewRows = 20

// warnFew adds a warning to the description that lists classes with few validation rows, the rarest first. It leaves
// out classes that no training row has.
func (s *rowSet) warnFew(names []string, trains, validates []int, unit string) {
	var few []count
	for i, n := range validates {
		if n < fewRows && trains[i] > 0 {
			few = append(few, count{names[i], n})
		}
	}
	if few == nil {
		return
	}
	slices.SortStableFunc(few, func(a, b count) int { return cmp.Compare(a.N, b.N) })
	s.Description.Warnings = append(s.Description.Warnings, fmt.Sprintf("few validation %s: %s (with fewer than %d, scores per %s are rough)", unit,
		text.List(len(few), mostLabels, ", ", func(i int) string { return fmt.Sprintf("%s %d", shown(few[i].Label), few[i].N) }), fewRows, strings.TrimSuffix(unit, "s")))
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
