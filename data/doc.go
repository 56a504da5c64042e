// Package data provides examples for training: tasks over strings, text of any length, and batches of token ids. It
// doesn't use graphs or tensors; all ids are slices of int.
//
// A Rule gives every source string its answer. Package data/toy has Heed's own rules, such as reverse, add and dates.
// To make your own rule, fill in a Rule. A Split draws examples of a rule for training and for validation, and uses no
// source for both. Place splits your own examples in the same way. A Coder turns examples into a Batch, and a model's
// output back into answers. Each Kind of task has its own Coder.
//
// A Text reads the characters of files, which stay on disk. The first nine tenths are for training, the rest for
// validation. A Text returns windows, in which the target of each character is the next character.
//
// Package data/tokenizer turns text into ids and back, for a Rule, a Text or your own texts. Pad makes a Batch from
// rows of ids, which may have different lengths.
//
// All random choices depend only on a seed and a position, such as an epoch and a step, so training can resume
// anywhere. All types are safe for concurrent use.
package data
