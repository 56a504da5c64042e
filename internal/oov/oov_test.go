package oov

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// A letter that training never saw makes a text strange. A new word doesn't, unless most words are new.
func TestStrange(t *testing.T) {
	letters := must.Get(tokenizer.New(tokenizer.Characters, slices.Values([]string{"a cat sees a dog"}), 0))(t)
	words := must.Get(tokenizer.New(tokenizer.Words, slices.Values([]string{"a cat sees a dog"}), 0))(t)
	for _, test := range []struct {
		tok  tokenizer.Tokenizer
		text string
		want bool
	}{
		{letters, "a god", false}, {letters, "a bird", true},
		{words, "a cat sees birds", false}, {words, "cat bird", false}, {words, "a bird sings loud", true}, {words, "bird", true}, {words, "dog", false},
	} {
		n, unknown, _ := Count(test.tok, test.text)
		if got := Strange(test.tok, n, unknown); got != test.want {
			t.Errorf("%q, with %d of %d symbols unknown: got %t, want %t", test.text, unknown, n, got, test.want)
		}
	}
}
