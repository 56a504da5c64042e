package data

// A Kind says what a model predicts for a source.
type Kind string

// A kind says which fields of a Rule are for a Kind, and how its sources are read.
type kind struct {
	classes, pairs, maxAnswer, target bool
	number                            bool // an answer is a number
	texts                             bool // an example has several texts, each in a row of its own
	cuts                              bool // the Coder cuts a source with more than MaxLen ids

	coder func(c coder) (Coder, error) // makes the Coder
}

// kinds are all kinds.
var kinds = map[Kind]kind{
	KindTagging:        {coder: newTaggingCoder, target: true},
	KindClassification: {coder: newClassificationCoder, classes: true, pairs: true, cuts: true},
	KindSeq2Seq:        {coder: newSeq2SeqCoder, maxAnswer: true, target: true},
	KindText:           {coder: newTextCoder},
	KindMaskedText:     {coder: newMaskedText},
	KindRegression:     {coder: newRegressionCoder, number: true, pairs: true, cuts: true},
	KindEmbed:          {coder: newEmbeddingCoder, texts: true, cuts: true},
}
