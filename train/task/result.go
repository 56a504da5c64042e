package task

import (
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/train/score"
)

// A Report compares a model's answers with the answers of examples. String returns it in words.
type Report struct {
	Units tokenizer.Units // units of answers

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

	Numbers score.Regression // for regression: answers that are numbers, with their references

	// Baseline has the metrics of the simple model that the model was compared with in training, on the same examples,
	// by name, such as accuracy; nil if there is none.
	Baseline map[string]float64

	kind    kind
	metrics metrics
}

// Beyond counts the sources and references that are beyond a model.
type Beyond struct {
	Unanswered        int `json:"unanswered"`         // sources that the model can't answer
	CutSources        int `json:"cut"`                // sources of which it reads only a part: see Model.Cuts
	UnknownSources    int `json:"unknown_sources"`    // sources with symbols that training never saw
	UnknownReferences int `json:"unknown_references"` // references with symbols or labels that training never saw
	LongReferences    int `json:"long_references"`    // references that are longer than any answer of the model
}

// A Judged is a source with its references and the model's answer.
type Judged struct {
	Source     string
	References []string // right answers
	Spans      []Span   // what the first reference marks, if the Answer has Spans
	Answer     Answer   // model's answer; no Text if there is an Err
	Right      bool     // whether the answer is one of the references
	Edits      int      // edits from the answer to the nearest reference; for tagging: wrong tags; for classification: 1 if wrong
}
