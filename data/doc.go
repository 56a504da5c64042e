// Package data holds what models learn from: toy tasks over strings, text of any length, and the batches of token ids
// that both become. It knows no graph and no tensor; everything is a slice of int.
//
// A Task is a rule from a source string to its answer: reverse, copy, sort, add or dates. A Split draws sources of a task
// for training and for validation, never one for both. A Labeler turns sources into a Batch for a model that labels
// every position, a Translator into Pairs for one that reads a source and writes an answer of any length.
//
// A Text is the characters of a UTF-8 file, which stays on disk: its first nine tenths train, the rest validates, in
// windows where each character is the target of the one before.
//
// A Vocab gives the symbols of either their ids.
//
// Everything random is a pure function of a seed and of the place asked for, such as an epoch and a step, so that
// training can resume anywhere. All types are safe for concurrent use.
package data
