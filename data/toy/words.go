package toy

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
)

const letters = "abcdefghijklmnopqrstuvwxyz"

var (
	reverseRule = wordRule("reverse", "a word, reversed", rearranged(slices.Reverse[[]byte]))
	copyRule    = wordRule("copy", "a word, unchanged", strings.Clone)
	sortRule    = wordRule("sort", "a word, with its letters in order", rearranged(slices.Sort[[]byte]))
)

// wordRule returns a rule over words of lower-case letters.
func wordRule(name, about string, answer func(word string) string) data.Rule {
	return data.Rule{
		Name: name, About: about, Kind: data.KindTagging, Alphabet: letters, MaxLen: 10, Example: "gorgonia",
		Sample: word,
		Answer: func(source string) (string, error) { return answer(source), nil },
	}
}

// word returns a random word of 1 to maxLen letters. All lengths are equally likely, and all letters are equally
// likely.
func word(rng *rand.Rand, maxLen int) string {
	w := make([]byte, 1+rng.IntN(maxLen))
	for i := range w {
		w[i] = letters[rng.IntN(len(letters))]
	}
	return string(w)
}

// rearranged returns an answer that rearranges the letters of a word.
func rearranged(rearrange func(letters []byte)) func(word string) string {
	return func(word string) string {
		w := []byte(word)
		rearrange(w)
		return string(w)
	}
}
