package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

// FuzzPublished encodes and decodes texts with the families' tokenizers. Where nothing is lost, the text comes back.
func FuzzPublished(f *testing.F) {
	list := families(f)
	for i, family := range list {
		for _, c := range family.Texts {
			if c.Trap != "" && len(c.Text) < 50 {
				f.Add(byte(i), c.Text, true)
			}
		}
	}
	same := func(text string) string { return text }
	restored := map[string]func(text string) string{
		"gpt2": same, "cl100k": same, "llama3": same, "o200k": same,
		"roberta": func(text string) string { // adds a space before the text
			if text == "" || strings.HasPrefix(text, " ") {
				return text
			}
			return " " + text
		},
		"gemma":  func(text string) string { return strings.ReplaceAll(text, "▁", " ") },
		"llama2": func(text string) string { return strings.ReplaceAll(text, "▁", " ") },
	}
	f.Fuzz(func(t *testing.T, family byte, text string, special bool) {
		tok := list[int(family)%len(list)]
		tokens, err := tok.Tokenize(text, Options{Special: special})
		if !utf8.ValidString(text) {
			must.Fail(t, err, "not UTF-8")
			return
		}
		must.Do(t, err)
		must.Do(t, checkParts(tok.Pipeline, text, tokens))
		decoded := must.Get(tok.Decode(idsOf(tokens)))(t)
		if want := restored[tok.name]; want != nil && !special && decoded != want(text) {
			t.Fatalf("%s: %q became %q", tok.name, text, decoded)
		}
		input, err := tok.Input(text, text)
		if err != nil || len(input.Tokens) != len(input.Types) || len(input.Tokens) != len(input.Texts) {
			t.Fatalf("%s: Input(%q) = %v, %v", tok.name, text, input, err)
		}
	})
}
