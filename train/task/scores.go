package task

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// ScoresOf returns the scores of a Score, a Report of the same model, or both. Either may be nil.
func ScoresOf(m *model.Model, s *Score, r *Report) Scores {
	k := configOf(m).Kind()
	scores := Scores{Task: m.Config.Task.Name, Kind: m.Config.Task.Kind, Score: k.Score, Unit: k.Unit}
	if s != nil {
		scores.Loss, scores.Value, scores.Total = finite(s.Loss), finite(s.Value), s.Total
		if s.Characters > 0 {
			scores.LossPerCharacter = finite(s.perCharacter())
		}
		if s.share {
			scores.Right = &s.Right
		}
	}
	if r != nil {
		scores.Rows, scores.Beyond, scores.Baseline = len(r.Judged), &r.Beyond, r.Baseline
		r.kind.scores(r, &scores)
	}
	return scores
}

// TextScoresOf returns the scores of a TextScore of the same model.
func TextScoresOf(m *model.Model, s model.TextScore) Scores {
	scores := ScoresOf(m, nil, nil)
	scores.Loss, scores.Perplexity, scores.BitsPerByte, scores.Total = finite(s.Loss), finite(s.Perplexity()), finite(s.BitsPerByte()), s.Tokens
	return scores
}

// share sets the score to a share of right answers.
func (s *Scores) share(right, total int) {
	s.Value, s.Right, s.Total = new(float64(right)/float64(total)), &right, total
}

// finite returns x, or nil if JSON has no such number.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// defined deletes the values that aren't finite, such as correlations with equal numbers, which aren't defined.
func defined(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(_ string, x float64) bool { return finite(x) == nil })
	return values
}

// classScores sets the scores of labels or tags.
func (r *Report) classScores(s *Scores) {
	macro := r.Classes.Macro()
	s.share(macro.Right, macro.Rows)
	s.Macro, s.Classes = &macro, r.Classes.Classes()
}

// A Score tells how good a model is on the validation examples.
type Score struct {
	Loss         float64 // mean loss; for kinds that choose among ids: cross-entropy, in nats
	Name         string  // name of the kind's metric for Value, such as "accuracy"
	Value        float64 // if answers are right or wrong: Right as a share of Total
	Right, Total int     // right answers, if there are any, and all answers; for text: characters or tokens; for tagging from a file: tags
	Characters   int     // for text in tokens: number of characters in the Total tokens; otherwise 0

	share       bool   // whether the Value is a share
	unit, right string // words of the Kind
	others      string // the other metrics, in words
	monitored   string // for labels and tags: the monitored metric if it isn't the score, and the values of the most frequent one, in words
}

// perCharacter returns the loss per character, which is comparable between models with different tokenizers. Without
// Characters it is the Loss.
func (s Score) perCharacter() float64 {
	if s.Characters == 0 {
		return s.Loss
	}
	return s.Loss * float64(s.Total) / float64(s.Characters)
}

// String returns the score in words.
func (s Score) String() string {
	loss := fmt.Sprintf("Val=%.6f", s.Loss)
	if s.Characters > 0 {
		loss += fmt.Sprintf(" per token, %.6f per character", s.perCharacter())
	}
	if s.share {
		return fmt.Sprintf("%s, %s %.4f (%d of %d %s %s)%s", loss, spoken(s.Name), s.Value, s.Right, s.Total, s.unit, s.right, s.monitored)
	}
	value := fmt.Sprintf("%s %.4f", spoken(s.Name), s.Value)
	if finite(s.Value) == nil {
		value = "no " + spoken(s.Name)
	}
	return fmt.Sprintf("%s, %s%s (%s)", loss, value, s.others, text.Count(s.Total, strings.TrimSuffix(s.unit, "s")))
}
