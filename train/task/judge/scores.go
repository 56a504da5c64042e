package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// ScoresOf returns the scores of a Score, a Report of the same model, or both. Either may be nil.
func ScoresOf(m *model.Model, s *Score, r *Report) Scores {
	k := KindOf(m.Config)
	scores := Scores{Task: m.Config.Task.Name, Kind: m.Config.Task.Kind, Score: k.Score.Name, Unit: k.Unit}
	if s != nil {
		scores.Loss, scores.Value, scores.Total, scores.Interval = finite(s.Loss), finite(s.Value), s.Total, s.Interval
		if s.Characters > 0 {
			scores.LossPerCharacter = finite(s.perCharacter())
		}
		if s.share {
			scores.Right = &s.Right
		}
	}
	if r != nil {
		scores.Rows, scores.Beyond, scores.Baseline, scores.Interval = len(r.Judged), &r.Beyond, r.Baseline, r.Interval()
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

// A Score tells how good a model is on the validation examples.
type Score struct {
	Loss         float64 // mean loss; for kinds that choose among ids: cross-entropy, in nats
	Name         string  // name of the kind's metric for Value, such as "accuracy"
	Value        float64 // if answers are right or wrong: Right as a share of Total
	Right, Total int     // right answers, if there are any, and all answers; for text: characters or tokens; for tagging from a file: tags
	Characters   int     // for text in tokens: number of characters in the Total tokens; otherwise 0
	Note         string  // words that String adds

	Interval [2]float64 // 95 % confidence interval of the Value; zeros if unknown

	share       bool   // whether the Value is a share
	unit, right string // words of the Kind
	others      string // the other metrics, in words
}

// NewScore returns the Score for a validation loss and the validation metrics of total answers. The values are those of
// a check or of an evaluation, by names such as val_accuracy.
func NewScore(c *model.Config, loss float64, values map[string]float64, total int) Score {
	k := KindOf(c)
	value, known := values["val_"+k.Score.Name]
	if !known {
		value = math.NaN()
	}
	s := Score{Loss: loss, Name: k.Score.Name, Value: value, Total: total, share: k.Score.Share, unit: k.Unit, right: k.Right}
	if k.Score.Share {
		s.Right = int(math.Round(s.Value * float64(s.Total)))
		s.Value = float64(s.Right) / float64(max(s.Total, 1))
		if _, many := k.scorer.(tags); c.FromRows() && !many && total > 0 { // tags of one row are alike
			s.Interval = wilson(s.Value, float64(total))
		}
	}
	for _, m := range k.Metrics[1:] {
		s.others += fmt.Sprintf(", %s %#.4g", metrics.Spoken(m.Name), values["val_"+m.Name])
	}
	return s
}

// Judged sets what a report of all rows knows better than a check, which has batches: the interval and, for embed and
// qa, the score.
func (s *Score) Judged(r *Report) {
	s.Interval = r.Interval()
	if k, ok := r.kind.scorer.(interface{ judged(r *Report, s *Score) }); ok {
		k.judged(r, s)
	}
}

func (texts) judged(r *Report, s *Score) {
	values, known := texts{}.values(r), false
	s.Name, s.others = r.textScores()[0], ""
	if s.Value, known = values[s.Name]; known {
		s.others = strings.TrimPrefix(r.textValues(values), fmt.Sprintf("%s %.4f", s.Name, s.Value))
	} else {
		s.Value = math.NaN()
	}
}

func (extracts) judged(r *Report, s *Score) {
	s.Name, s.Value, s.Right, s.Total, s.unit = "exact_match", r.Extracts.ExactMatch(), r.Extracts.Exact, r.Extracts.N, questions
	s.Note = fmt.Sprintf(", F1 %.4f", r.Extracts.F1()) + s.Note
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
		return fmt.Sprintf("%s, %s %.4f (%d of %d %s %s%s)%s", loss, metrics.Spoken(s.Name), s.Value, s.Right, s.Total, s.unit, s.right, intervalText(s.Interval, ""), s.Note)
	}
	value := fmt.Sprintf("%s %.4f", metrics.Spoken(s.Name), s.Value)
	if finite(s.Value) == nil {
		value = "no " + metrics.Spoken(s.Name)
	}
	return fmt.Sprintf("%s, %s%s (%s%s)", loss, value, s.others, text.Count(s.Total, strings.TrimSuffix(s.unit, "s")), intervalText(s.Interval, " of "+metrics.Spoken(s.Name)))
}
