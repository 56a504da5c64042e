// Package score says how good answers are beside the right ones: error rates by edit distance, chrF and BLEU of texts,
// and precision and recall of classes. It knows no model; everything is a string, or a slice of units of any comparable
// type.
//
// Each score is a type whose zero value is ready: Add takes one answer with its references, of which there may be
// several, and Value returns the score of all that were added. Where there is no reference, an empty one stands for it.
// Memory is for the longest text, and for the classes, not for how many answers there are, and the same answers give
// the same bits. A value is for one goroutine.
package score
