// Package data holds what models learn from: toy tasks over strings, text of any length, and the batches of token ids
// that both become. It knows no graph and no tensor; everything is a slice of int.
//
// A Rule is from a source string to its answer: Named has Heed's own, such as reverse, add and dates, and anybody's is
// a struct to fill in. A Split draws examples of a rule for training and for validation, never one source for both.
// HeldOut splits examples of one's own. A Coder turns examples into a Batch, and what a model makes of it back into
// answers. There are four kinds: classification, tagging, seq2seq and text.
//
// A Text is the characters of a UTF-8 file, which stays on disk: its first nine tenths train, the rest validates, in
// windows where each character is the target of the one before.
//
// Package data/tokenizer turns text into ids and back, for a Rule, a Text or texts of one's own. Pad makes a Batch of
// rows of ids of any lengths.
//
// Everything random is a pure function of a seed and of the place asked for, such as an epoch and a step, so that
// training can resume anywhere. All types are safe for concurrent use.
package data
