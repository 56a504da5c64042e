package data

// A Kind says what a model predicts for a source.
type Kind string

// A kind says which fields of a Rule are for a Kind, and how its sources are read.
type kind struct {
	classes, pairs, maxAnswer, target bool
	number                            bool // an answer is a number
	separator                         bool // an answer has several labels
	texts                             bool // an example has several texts, each in a row of its own
	parts                             bool // an answer is a part of the source
	cuts                              bool // the Coder cuts a source with more than MaxLen ids

	coder func(c coder) (Coder, error) // makes the Coder
}

// kinds has all kinds: see kinds.go, so that nothing here needs their Coders.
var kinds map[Kind]kind
