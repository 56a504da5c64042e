package task

import (
	"fmt"
	"math"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/score"
)

// Scores has the scores of an evaluation as plain data. In JSON, it is one object, in which a key is missing if the
// evaluation has no such value. The method Model.Scores makes it.
type Scores struct {
	Task string    `json:"task"`
	Kind data.Kind `json:"kind"`

	// Loss and LossPerCharacter are the fields of a Score. Only the validation set, or a text, has them.
	Loss             *float64 `json:"loss,omitempty"`
	LossPerCharacter *float64 `json:"loss_per_character,omitempty"` // for text in tokens

	// Perplexity and BitsPerByte are those of a TextScore.
	Perplexity  *float64 `json:"perplexity,omitempty"`
	BitsPerByte *float64 `json:"bits_per_byte,omitempty"`

	// Score is the name of the kind's score, such as accuracy, and Value is its value. If answers are right or wrong,
	// the Value is Right as a share of Total, and both count what the Unit says, such as tags.
	Score string   `json:"score"`
	Value *float64 `json:"value,omitempty"`
	Right *int     `json:"right,omitempty"`
	Total int      `json:"total"`
	Unit  string   `json:"unit"`

	// For classification and tagging: the mean of each score over the Classes, without a Class, and the score of every
	// label or tag. A missing answer counts as the class "".
	Macro   *score.ClassScore  `json:"macro,omitempty"`
	Classes []score.ClassScore `json:"classes,omitempty"`

	// For tagging: rows with every tag right. For tags of entities: the score of all entities, without a Class, and of
	// each type.
	RightRows *int               `json:"right_rows,omitempty"`
	Entities  *score.ClassScore  `json:"entities,omitempty"`
	Types     []score.ClassScore `json:"types,omitempty"`

	// For seq2seq: see Report.
	ErrorRate *float64 `json:"error_rate,omitempty"`
	Edits     *int     `json:"edits,omitempty"`
	ChrF      *float64 `json:"chrf,omitempty"`
	BLEU      *float64 `json:"bleu,omitempty"`

	// For regression.
	MeanAbsoluteError *float64 `json:"mean_absolute_error,omitempty"`
	Pearson           *float64 `json:"pearson,omitempty"`
	Spearman          *float64 `json:"spearman,omitempty"`

	Baseline map[string]float64 `json:"baseline,omitempty"` // see Report

	// Rows is the number of answers in a Report, and Beyond counts the rows that are beyond the model.
	Rows   int     `json:"rows,omitempty"`
	Beyond *Beyond `json:"beyond,omitempty"`
}

// Scores returns the scores of a Score, a Report of the same model, or both. Either may be nil.
func (m *Model) Scores(s *Score, r *Report) Scores {
	k := m.Config.Kind()
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

// TextScores returns the scores of a TextScore of the same model.
func (m *Model) TextScores(s TextScore) Scores {
	scores := m.Scores(nil, nil)
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
	return fmt.Sprintf("%s, %s %.4f%s (%d %s)", loss, spoken(s.Name), s.Value, s.others, s.Total, s.unit)
}
