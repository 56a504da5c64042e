package data

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// A Rule is a task that a model can learn. It gives every source string one answer. Package data/toy has Heed's own
// rules. To make your own rule, fill in the fields. Only fields with a JSON name are saved with a trained model; its
// tokenizers are saved separately.
type Rule struct {
	Name  string `json:"name"`            // only letters, digits, - and _
	About string `json:"about,omitempty"` // a few words on the answer
	Kind  Kind   `json:"kind"`

	Alphabet  string   `json:"alphabet,omitempty"`   // all symbols of sources and answers, without repeats
	Classes   []string `json:"classes,omitempty"`    // all answers; for classification and multilabel, and for the tags of a published model
	Pairs     bool     `json:"pairs,omitempty"`      // a source is two texts with a tab between them; only for kinds that read pairs, such as classification
	MaxLen    int      `json:"max_len"`              // number of symbols in the longest source; for text, in a context
	MaxAnswer int      `json:"max_answer,omitempty"` // number of symbols in the longest answer; only for seq2seq
	Example   string   `json:"example,omitempty"`    // a source to try

	// Separator is only for multilabel. It stands between the labels of an answer. An answer that is only the separator
	// has no label.
	Separator string `json:"separator,omitempty"`

	// Texts is only for embed, and the number of texts in a row: 2, or more with hard negatives. The source is the
	// first text, the query. An answer is the other texts, the positive first, with tabs between them. If Scored is
	// true, Texts is 2, and an answer is the second text, a tab, and the similarity of the two texts, from -1 to 1. If
	// Texts is 0, there are no answers.
	Texts  int  `json:"texts,omitempty"`
	Scored bool `json:"scored,omitempty"`

	// Unanswered is only for qa: some contexts have no answer to their questions, and the model may say so.
	// With Starts, a column of the file says where answers begin.
	Unanswered bool `json:"unanswered,omitempty"`
	Starts     bool `json:"starts,omitempty"`

	// Mean and Scale are only for regression: an answer x is learned as (x − Mean)/Scale. A Scale of 0 means 1.
	Mean  float64 `json:"mean,omitempty"`
	Scale float64 `json:"scale,omitempty"`

	// Instead of an Alphabet, a rule may have tokenizers: Source encodes sources, Target encodes answers, and MaxLen
	// and MaxAnswer count their ids. With a Source, tagging also needs a Target, and each symbol of a source has one
	// tag: see Tagged. Seq2seq without a Target uses Source for both. Other kinds can't have a Target. If the answer is
	// one label or one number, a source that is too long is cut.
	Source tokenizer.Tokenizer `json:"-"`
	Target tokenizer.Tokenizer `json:"-"`

	// Published describes the ids of a published model, whose tokenizer is the Source. If it isn't zero, the template
	// of the Source adds special tokens to a source. For kinds that read pairs, a source with a tab is two texts, also
	// without Pairs. For tagging, white space separates the tokens that have tags. For seq2seq, the template of the
	// Target, which is a *tokenizer.Pipeline too, adds special tokens to an answer; MaxAnswer counts them, and sources
	// that are too long are cut.
	Published Published `json:"published,omitzero"`

	// Sample returns a random source of at most maxLen symbols. The argument maxLen is the rule's MaxLen. Sample must
	// get all random numbers from rng. Several goroutines may call Sample and Answer at the same time.
	Sample func(rng *rand.Rand, maxLen int) string `json:"-"`

	// Answer returns the answer to a source. The source has 1 to MaxLen symbols of the Alphabet. If it has no answer,
	// the error says why.
	Answer func(source string) (string, error) `json:"-"`

	// Spell converts a source and its answer to the text that the model sees. The answer is "" if the source has none,
	// or if the rule has no Answer. Read converts a spelled answer back. Both may be nil: then the model sees the
	// source and the answer unchanged.
	Spell func(source, answer string) (string, string) `json:"-"`
	Read  func(spelled string) string                  `json:"-"`

	// With ByAnswer, a Split separates training and validation by answer, not by source. Use it if many sources have
	// the same answer.
	ByAnswer bool `json:"-"`
}

// Published describes the ids of a published model. Its zero value stands for no published model.
type Published struct {
	Tokens int `json:"tokens"`           // number of ids that the model knows; the tokenizer may have fewer
	Start  int `json:"start"`            // id that begins a text; -1 for none; for seq2seq, the id before an answer
	Pad    int `json:"pad"`              // id of padding; -1 for any
	Mask   int `json:"mask"`             // id of a mask; -1 for none
	MaxLen int `json:"max_len,omitzero"` // limit of the rule's MaxLen; 0 for none

	Segments int  `json:"segments,omitzero"` // number of segments that the model tells apart; see Layout
	Targets  int  `json:"targets,omitzero"`  // for seq2seq: number of ids of answers, if sources have other ids; otherwise 0
	Tabs     bool `json:"-"`                 // a source with a tab is two texts, also without Pairs: the model may read one or two
}

// An Example is a source with its answer. The answer may be empty, see Coder.Batch.
type Example struct {
	Source, Answer string

	encoded *encodedAnswer // see Rule.Divide
}

// Texts returns the texts of an example for embed: the source and the first n−1 texts of the answer, or fewer if it has
// fewer.
func (e Example) Texts(n int) []string {
	texts := append([]string{e.Source}, strings.Split(e.Answer, "\t")...)
	return texts[:min(n, len(texts))]
}

// draw returns a random example.
func (r *Rule) draw(rng *rand.Rand) (Example, error) {
	source := r.Sample(rng, r.MaxLen)
	answer, err := r.Answer(source)
	if err != nil {
		return Example{}, fmt.Errorf("task %s: the source %q from Sample has no answer: %w", r.Name, source, err)
	}
	return Example{Source: source, Answer: answer}, nil
}

// key returns the string by which a Split separates examples: the answer with ByAnswer, else the source.
func (r *Rule) key(e Example) string {
	if r.ByAnswer {
		return e.Answer
	}
	return e.Source
}

// longest is the maximum of a rule's MaxLen and MaxAnswer.
const longest = 1 << 24
