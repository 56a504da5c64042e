package data

// A Kind says what a model predicts for a source.
type Kind string

const (
	// KindTagging predicts one symbol of the answer at every position of a source. The answer can't be longer than the
	// source.
	KindTagging Kind = "tagging"

	// KindClassification chooses one of a few classes for a whole source.
	KindClassification Kind = "classification"

	// KindSeq2Seq writes an answer symbol by symbol. The answer may be longer than the source.
	KindSeq2Seq Kind = "seq2seq"

	// KindText predicts the next symbol of a text.
	KindText Kind = "text"

	// KindMaskedText predicts the masked symbols of a text (Devlin et al., 2018).
	KindMaskedText Kind = "mlm"

	// KindRegression predicts one number for a whole source. In an Example, the answer is the number in decimal
	// notation.
	KindRegression Kind = "regression"

	// KindEmbed makes a vector of a text. Texts with similar meanings shall get similar vectors. A rule's Texts says
	// which texts an Example has. In a batch, each text has a row of its own: row i·Texts is the source of example i,
	// and the texts of its answer follow. Their targets are numbers that are equal if and only if the texts are. With
	// Scored, the number of a source's row is the score.
	KindEmbed Kind = "embed"
)

// A kind says which fields of a Rule are for a Kind, and how its sources are read.
type kind struct {
	classes, pairs, maxAnswer, target bool
	number                            bool // an answer is a number
	texts                             bool // an example has several texts, each in a row of its own
	cuts                              bool // the Coder cuts a source with more than MaxLen ids
}

// kinds are all kinds. Each has its Coder in coders.
var kinds = map[Kind]kind{
	KindTagging:        {target: true},
	KindClassification: {classes: true, pairs: true, cuts: true},
	KindSeq2Seq:        {maxAnswer: true, target: true},
	KindText:           {},
	KindMaskedText:     {},
	KindRegression:     {number: true, pairs: true, cuts: true},
	KindEmbed:          {texts: true, cuts: true},
}
