// Package oov counts out-of-vocabulary symbols: symbols that a tokenizer doesn't know.
package oov

import "github.com/heed-go/heed/data/tokenizer"

// Count returns the number of ids of a text, and how many of them are symbols that the tokenizer doesn't know. For
// some tokenizers, an unknown symbol is an error, which counts as one.
func Count(t tokenizer.Tokenizer, text string) (n, unknown int, err error) {
	ids, err := t.Encode(text)
	if err != nil {
		return len(ids), 1, err
	}
	for _, id := range ids {
		if id == t.Unknown() {
			unknown++
		}
	}
	return len(ids), unknown, nil
}

// Strange reports whether a text with n ids is unlike those of training, if this number of the ids is unknown. One is
// enough where they stand for letters or parts of words. Where they stand for words, a new one is normal, and most must
// be unknown.
func Strange(t tokenizer.Tokenizer, n, unknown int) bool {
	switch t.(type) {
	case *tokenizer.Vocab, *tokenizer.Pipeline:
		return unknown > 0
	}
	return 2*unknown > n
}
