package tokenizer

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// The expected numbers are word_ids of the reference library, which counts the words of each text.
func TestInputWords(t *testing.T) {
	f := readFamily(t, "bert")
	input := must.Get(f.WithLimit(0).Input("Before xylophones, we", "proceed!"))(t)
	var words [2][]int
	for i, word := range input.Words {
		if text := input.Texts[i]; text >= 0 {
			words[text] = append(words[text], word)
		} else if word != -1 {
			t.Errorf("a special token has the word %d", word)
		}
	}
	for text, want := range [][]int{{0, 1, 2, 3}, {0, 1}} {
		if got := slices.Compact(slices.Clone(words[text])); !slices.Equal(got, want) || len(words[text]) == len(got) {
			t.Errorf("text %d has the words %d, want several tokens of one word, and %d", text, words[text], want)
		}
	}
	for limit := range 12 {
		cut := must.Get(f.WithLimit(limit+5).Input("Before xylophones, we", "proceed!"))(t)
		for i, word := range cut.Words {
			if place := slices.Index(input.Tokens, cut.Tokens[i]); cut.Texts[i] >= 0 && input.Texts[place] == cut.Texts[i] && word != input.Words[place] {
				t.Errorf("cut to %d tokens: token %d has the word %d, want %d", limit+5, i, word, input.Words[place])
			}
		}
	}
}
