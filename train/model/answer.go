package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/heed-go/heed/internal/text"
)

// An Answer is a model's answer to an input. In JSON, it is an object:
//
//	{"input": "4 x", "answer": "no", "probability": 0.9, "cut": true, "unknown": true,
//	 "alternatives": [{"answer": "no", "probability": 0.9}, {"answer": "yes", "probability": 0.1}]}
//	{"input": "3 x", "answer": ["a"], "scores": [{"label": "a", "score": 0.9}, {"label": "b", "score": 0.1}]}
//	{"input": "Ann Lee sings", "answer": "B-PER I-PER O", "probability": 0.9,
//	 "spans": [{"label": "PER", "start": 0, "end": 7, "text": "Ann Lee"}]}
//	{"input": "Who sings?\tAnn Lee sings.", "answer": "Ann Lee", "start": 0, "end": 7, "probability": 0.9}
//
// The keys cut and unknown are there if they are true, spans if Spans isn't nil, start and end if Part isn't nil, and
// alternatives if PredictOptions.Top isn't 0. If an answer may have several labels, it is a list of them, the key
// scores has the score of each label, and there is no probability. If there is no answer, the object has the key error
// instead of answer, probability, spans, scores and alternatives. A probability that isn't a number is left out. The
// answer of a model that learned numbers is a number, without a probability.
type Answer struct {
	Input string
	Text  string

	Number *float64 // the answer of a model that learned numbers; nil for other models

	// LogProb is the natural logarithm of the answer's probability in the model. For a sequence, this is the
	// probability of all symbols and the end. It is 0 if the answer is a Number.
	LogProb float64

	// Spans has the entities that the tags of the answer mark, in the order of the input: see score.Entities and, for
	// published models, EntityRules. It is nil if the model has no such tags.
	Spans []Span

	// If an answer may have several labels, Labels has them, and Scores the scores of all labels, both highest score
	// first. The Text is the Labels with the rule's Separator between them. Otherwise, both are nil.
	Labels []string
	Scores []LabelScore

	// Part is where the context of a question has the answer; nil for other kinds than qa. It is empty if there is no
	// answer.
	Part *Part

	// Top has the likeliest answers, likeliest first, up to PredictOptions.Top. The first is the answer itself. Several
	// sequences of tokens may have the same Text; then only the likeliest is in Top. If an answer may have several
	// labels, Top has labels, each with the logarithm of its score.
	Top []Alternative

	Unknown bool // whether the input has letters, or mostly words, that training never saw
	Cut     bool // whether the model ignored a part of the input: see Model.Cuts

	Err error // an *InputError if the task doesn't allow the input; then there is no Text
}

// A Part is a part of a text: the bytes from Start up to but not including End.
type Part struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// A Span is an entity in an input: the bytes from Start up to but not including End. Text is Input[Start:End]. Label is
// the entity's type, such as PER, or empty if the tags have no types. Score is, for published models, the mean
// probability of its tags.
type Span struct {
	Label string  `json:"label"`
	Score float64 `json:"score,omitzero"`
	Start int     `json:"start"`
	End   int     `json:"end"`
	Text  string  `json:"text"`
}

// A LabelScore is one of several labels with its score: the probability that the label is right.
type LabelScore struct {
	Label  string  `json:"label"`
	Score  float64 `json:"score"`
	Chosen bool    `json:"-"` // whether the score reaches the label's threshold, so that the answer has the label
}

// An Alternative is one of the likeliest answers to an input. The fields are as in Answer.
type Alternative struct {
	Text    string
	LogProb float64
	Part    *Part
}

// MarshalJSON encodes an Answer as its documentation says.
func (a Answer) MarshalJSON() ([]byte, error) {
	o := struct {
		Input  string `json:"input"`
		Answer any    `json:"answer,omitempty"`
		*Part
		Probability  *float64      `json:"probability,omitempty"`
		Cut          bool          `json:"cut,omitempty"`
		Unknown      bool          `json:"unknown,omitempty"`
		Spans        []Span        `json:"spans,omitzero"` // not nil, but empty: the model found no entity
		Scores       []LabelScore  `json:"scores,omitempty"`
		Alternatives []Alternative `json:"alternatives,omitempty"`
		Error        string        `json:"error,omitempty"`
	}{Input: a.Input, Cut: a.Cut, Unknown: a.Unknown}
	if err := a.Err; err != nil {
		var wrong *InputError
		if errors.As(err, &wrong) { // wrong.Err doesn't repeat the input
			err = wrong.Err
		}
		o.Error = text.OneLine(err)
	} else {
		o.Answer, o.Part, o.Probability, o.Spans, o.Alternatives = a.Text, a.Part, probability(a.LogProb), a.Spans, a.Top
		if a.Number != nil {
			o.Answer, o.Probability = a.Number, nil
		}
		if a.Labels != nil {
			o.Answer, o.Probability, o.Scores = a.Labels, nil, a.Scores
		}
	}
	return json.Marshal(o)
}

// MarshalJSON encodes an Alternative as an object with the keys answer and probability and, with a Part, start and end.
func (a Alternative) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Answer string `json:"answer"`
		*Part
		Probability *float64 `json:"probability,omitempty"`
	}{a.Text, a.Part, probability(a.LogProb)})
}

// probability returns e to the power of logProb, or nil if JSON has no such number.
func probability(logProb float64) *float64 {
	p := math.Exp(logProb)
	if math.IsNaN(p) || math.IsInf(p, 0) {
		return nil
	}
	return &p
}

// An InputError reports an input that a model can't answer because the input is wrong.
type InputError struct {
	Input string
	Err   error
}

// Error returns the quoted input and the reason.
func (e *InputError) Error() string { return fmt.Sprintf("%q: %v", e.Input, e.Err) }

// Unwrap returns the reason.
func (e *InputError) Unwrap() error { return e.Err }
