package tokenizer

import (
	"bytes"
	"fmt"
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

// FuzzFiles encodes and decodes a text with every file that opens. The parts of tokens must be whole characters. The
// ids must give the same text at once and one by one.
func FuzzFiles(f *testing.F) {
	vocab := `{"<unk>": 0, "a": 1, "##b": 2, "b</w>": 3, "##b</w>": 4`
	for b := range 256 {
		vocab += fmt.Sprintf(`, "<0x%02X>": %d`, b, 5+b)
	}
	for _, parts := range []string{
		`"byte_fallback": true, "end_of_word_suffix": "</w>"`,
		`"byte_fallback": true, "continuing_subword_prefix": "##"`,
		`"end_of_word_suffix": "</w>", "continuing_subword_prefix": "##", "unk_token": "<unk>"`,
		`"byte_fallback": true, "continuing_subword_prefix": "é", "unk_token": "<unk>", "fuse_unk": true`,
	} {
		file := `{"version": "1.0", "decoder": {"type": "ByteFallback"}, "model": {"type": "BPE", ` + parts + `, "vocab": ` + vocab + `}, "merges": []}}`
		for _, text := range []string{"é", "aé", "éa é", "abé#"} {
			f.Add([]byte(file), text)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tok, err := Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		tokens, err := tok.Tokenize(text, Options{})
		if err != nil {
			return
		}
		must.Do(t, checkParts(tok, text, tokens))
	})
}
