package score

import (
	"maps"
	"math"
	"slices"

	"github.com/heed-go/heed/internal/metrics"
)

// Labels scores answers that may have several labels each. It keeps the scores of all labels in memory.
type Labels struct {
	classes tallies
	scores  map[string]*labelScores
}

type labelScores struct {
	logOdds []float32
	right   []bool
}

// Add adds an answer and the right labels, each of which has a label once.
func (l *Labels) Add(answer, right []string) {
	if l.classes == nil {
		l.classes, l.scores = tallies{}, map[string]*labelScores{}
	}
	for _, label := range answer {
		if l.classes.get(label).Answers++; slices.Contains(right, label) {
			l.classes.get(label).Right++
		}
	}
	for _, label := range right {
		l.classes.get(label).Rows++
	}
}

// AddScore adds the probability of a label in an answer that has been added, and whether the label is right.
func (l *Labels) AddScore(label string, probability float64, right bool) {
	s := l.scores[label]
	if s == nil {
		s = &labelScores{}
		l.scores[label] = s
	}
	s.logOdds, s.right = append(s.logOdds, float32(math.Log(probability)-math.Log1p(-probability))), append(s.right, right)
}

// Classes returns the score of every label that was in an answer or right, sorted by name.
func (l *Labels) Classes() []ClassScore { return l.classes.sorted(func(ClassScore) int { return 0 }) }

// Micro returns the scores of all labels together, in which each label of a row counts the same. Its Class is empty.
func (l *Labels) Micro() ClassScore { return l.classes.total() }

// Macro returns the means of precision, recall and F1 over Classes: see Confusion.Macro.
func (l *Labels) Macro() ClassScore { return macro(l.Classes()) }

// AveragePrecision returns the average precision of all labels together, and the mean of the average precisions of the
// labels that are right somewhere: see metrics.AveragePrecision. Without right labels, both are NaN.
func (l *Labels) AveragePrecision() (micro, mean float64) {
	var together labelScores
	sum, count := 0.0, 0.0
	for _, label := range slices.Sorted(maps.Keys(l.scores)) {
		s := l.scores[label]
		together.logOdds, together.right = append(together.logOdds, s.logOdds...), append(together.right, s.right...)
		if p := metrics.AveragePrecision(s.logOdds, s.right); p == p {
			sum, count = sum+p, count+1
		}
	}
	return metrics.AveragePrecision(together.logOdds, together.right), sum / count
}
