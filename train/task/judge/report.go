package judge

import (
	"io"
	"math"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
)

// A Kind is a kind of task, with the words for its results.
type Kind struct {
	name data.Kind

	Unit  string // plural noun for what a Score counts, such as "tags"
	Right string // word for a right answer, such as "exactly right"; empty if answers are near or far, not right or wrong

	Metrics []metrics.Metric // before task.New has read the rows of a file, the metrics that the task may have
	Score   metrics.Metric   // the first of the Metrics: it says how good a model is

	LossUnit string // such as "nats"; empty if the loss has none
	Baseline string // name of the simple model beside which pages show a model; empty if there is none

	scorer
}

// A scorer judges the answers of a kind of task. Most have the methods of classes, and replace those in which they
// differ.
type scorer interface {
	metrics(c *model.Config) []metrics.Metric   // see Kind.Metrics
	judge(m *model.Model, r *Report, j *Judged) // compares an answer with its references and adds it to a report
	values(r *Report) map[string]float64        // the values of a report, by the names of the metrics
	write(r *Report, w io.Writer)               // writes the scores of a report in words
	scores(r *Report, s *Scores)                // sets the scores of a report
	chance(r, baseline *Report) float64         // see Report.Chance
	interval(r *Report) [2]float64              // see Report.Interval
	details(j Judged) (names, values []string)  // what Report.WriteAnswers writes between an answer and its references
}

// A Report compares a model's answers with the answers of examples. String returns it in words.
type Report struct {
	Units tokenizer.Units // units of answers; empty if an answer is a label or a number

	// For seq2seq, Judged has each source once, with all its references. For other kinds, it has each example. Its
	// order is the order of the examples.
	Judged []Judged
	Right  int // number of right answers in Judged

	Beyond // counts of rows that are beyond the model

	// Scores for seq2seq. Errors counts symbols, or words if the answers are byte pairs. If the units are tokens, BLEU
	// counts these tokens.
	Errors score.ErrorRate[string]
	ChrF   score.CHRF
	BLEU   score.BLEU

	Classes  score.Confusion // for classification and tagging: labels or tags; a missing answer counts as ""
	Entities score.Entities  // for tagging; see HasEntities

	Labels   score.Labels   // for multilabel
	Extracts score.Extracts // for qa

	Numbers score.Regression // for regression: answers that are numbers, with their references; for embed with scores: cosines, with the scores
	Ranking score.Ranking    // for embed without scores: rank of each row's positive among the texts of all answers

	// Baseline has the metrics of the simple model that the model was compared with in training, on the same examples,
	// by name, such as accuracy; nil if there is none. For embed, it compares texts by TF-IDF.
	Baseline map[string]float64

	// Chance is the probability that two equally good models differ on the judged rows at least as much as the model
	// and its baseline do; nil if there is no baseline.
	Chance *float64

	kind  Kind
	about string // what the baseline is, in words
}

// Values returns the values of the report, by the names of the kind's metrics.
func (r *Report) Values() map[string]float64 { return r.kind.values(r) }

// HasEntities reports whether the right tags are made for entities, such as B-PER, I-PER and O.
func (r *Report) HasEntities() bool { return r.Entities.Others == 0 && r.Entities.Total().Rows > 0 }

// scored reports whether the rows of a report have scores.
func (r *Report) scored() bool { return len(r.Judged) > 0 && r.Judged[0].Answer.Number != nil }

// gather sets Judged from the examples, without answers. If joined is true, examples with the same source are one.
func (r *Report) gather(examples []data.Example, joined bool) {
	r.Judged = make([]Judged, 0, len(examples)) // growing would take more memory
	indices := map[string]int{}                 // for seq2seq: index of each source in Judged
	for _, e := range examples {
		i, ok := indices[e.Source]
		if !ok {
			if joined {
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

// Beyond counts the sources and references that are beyond a model.
type Beyond struct {
	Unanswered        int `json:"unanswered"`         // sources that the model can't answer
	CutSources        int `json:"cut"`                // sources of which it reads only a part: see Model.Cuts
	UnknownSources    int `json:"unknown_sources"`    // sources with letters, or mostly words, that training never saw
	UnknownReferences int `json:"unknown_references"` // references with symbols or labels that training never saw
	LongReferences    int `json:"long_references"`    // references that are longer than any answer of the model
}

// A Judged is a source with its references and the model's answer.
type Judged struct {
	Source     string
	References []string     // right answers
	Spans      []model.Span // what the first reference marks, if the Answer has Spans
	Answer     model.Answer // model's answer; no Text if there is an Err
	Right      bool         // whether the answer is one of the references
	Edits      int          // edits from the answer to the nearest reference; for tagging: wrong tags; for classification: 1 if wrong; for multilabel: labels that only one of the answer and the reference has; for embed: texts that come before the right one

	labels int // for multilabel: number of labels of the answer and of the reference
}

// Scores has the scores of an evaluation as plain data. In JSON, it is one object, in which a key is missing if the
// evaluation has no such value. ScoresOf makes it.
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

	Interval [2]float64 `json:"interval,omitzero"` // see Report.Interval: of the Value, for rows of a file

	// For classification, multilabel and tagging: the mean of each score over the Classes, without a Class, and the
	// score of every label or tag. A missing answer counts as the class "", but for multilabel.
	Macro   *score.ClassScore  `json:"macro,omitempty"`
	Classes []score.ClassScore `json:"classes,omitempty"`

	// For multilabel: the score of all labels together, without a Class; their average precision, and the mean of those
	// of each label; and the share of rows with exactly the right labels.
	Micro                 *score.ClassScore `json:"micro,omitempty"`
	AveragePrecision      *float64          `json:"average_precision,omitempty"`
	MacroAveragePrecision *float64          `json:"macro_average_precision,omitempty"`
	SubsetAccuracy        *float64          `json:"subset_accuracy,omitempty"`

	// For tagging and multilabel: rows with every tag or label right. For tags of entities: the score of all entities,
	// without a Class, and of each type.
	RightRows *int               `json:"right_rows,omitempty"`
	Entities  *score.ClassScore  `json:"entities,omitempty"`
	Types     []score.ClassScore `json:"types,omitempty"`

	// For seq2seq: see Report.
	ErrorRate *float64 `json:"error_rate,omitempty"`
	Edits     *int     `json:"edits,omitempty"`
	ChrF      *float64 `json:"chrf,omitempty"`
	BLEU      *float64 `json:"bleu,omitempty"`

	F1 *float64 `json:"f1,omitempty"` // for qa: see score.Extracts

	// For embed without scores: see score.Ranking.
	MRR      *float64 `json:"mrr,omitempty"`
	Recall1  *float64 `json:"recall@1,omitempty"`
	Recall10 *float64 `json:"recall@10,omitempty"`

	// For regression and, but for MeanAbsoluteError, for embed with scores.
	MeanAbsoluteError *float64 `json:"mean_absolute_error,omitempty"`
	Pearson           *float64 `json:"pearson,omitempty"`
	Spearman          *float64 `json:"spearman,omitempty"`

	Baseline map[string]float64 `json:"baseline,omitempty"` // see Report

	// Rows is the number of answers in a Report, and Beyond counts the rows that are beyond the model.
	Rows   int     `json:"rows,omitempty"`
	Beyond *Beyond `json:"beyond,omitempty"`
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
