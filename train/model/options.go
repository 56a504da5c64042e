package model

// PredictOptions are the options of PredictAll.
type PredictOptions struct {
	// Beam is the width of the beam search for seq2seq: see decode.BeamOptions. It is at most MaxBeam. 1 means greedy
	// search, which takes the likeliest symbol each time, and 0 the num_beams of a published model, or 1. For other
	// kinds, it must be 0 or 1.
	Beam int

	// Top is the number of likeliest answers in Answer.Top: classes, next symbols of a text, or sequences. For seq2seq,
	// tagging and masked text, it is at most MaxBeam. For seq2seq, the beam is at least Top wide, so Top may change the
	// answer. For other kinds, it doesn't. The probabilities of all classes add up to 1. For multilabel, these are the
	// labels with the highest scores.
	Top int

	// Entities is for published models that tag the pieces of a text, and says how tags become entities: the name of
	// one of the EntityRules. Empty means words.
	Entities string

	// NoAnswer is for qa. It allows the answer "", that the context has no answer. A model that learned such questions
	// always may say so.
	NoAnswer bool

	// Threshold chooses between two labels. The answer then comes first in Answer.Top, even if it is less likely.
	Threshold Threshold

	// Labels, if not nil, are the labels to choose among in place of the model's own.
	Labels *Labels
}
