// Package score compares answers with reference answers: error rates by edit distance, chrF and BLEU for texts,
// precision and recall for classes and for entities in tags, errors and correlations for numbers. Other answers are
// strings, or slices of any comparable type.
//
// Each score is a type whose zero value is ready to use. Add takes one answer and its references; no references mean
// one empty reference. Value returns the score of all answers so far. Except for Regression, memory grows with the
// longest text and the number of classes, not with the number of answers. The same answers always give exactly the same
// value. Use each score in one goroutine only.
package score
