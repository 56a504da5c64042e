package tokenizer

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// WritePublished must write a file that Open reads, with the same ids and texts.
func TestWritePublished(t *testing.T) {
	made := func(units Units) Tokenizer {
		t.Helper()
		return must.Get(New(units, slices.Values([]string{"the cat, the \"dog\" and the \n\tébène 猫 <s>"}), 300))(t)
	}
	vocab := must.Get(NewVocab("\t\n \"\\<>abcdehnost,gé猫è\u0301\U0001f600"))(t)
	known := func(text string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(vocab.Symbols(), r) {
				return r
			}
			return -1
		}, text)
	}
	for name, own := range map[string]Tokenizer{"vocab": vocab, "characters": made(Characters), "bpe": made(BPE), "tokens": made(Tokens)} {
		var file bytes.Buffer
		must.Do(t, WritePublished(&file, own))
		again, err := Open(writeFolder(t, map[string]string{"tokenizer.json": file.String()}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again.Len() != own.Len() || again.Unknown() != own.Unknown() {
			t.Errorf("%s: %d ids, unknown %d, want %d and %d", name, again.Len(), again.Unknown(), own.Len(), own.Unknown())
		}
		for _, text := range []string{"", "the dog", " \t\n\"cat\"  ", "e\u0301 é 猫<s>", strings.Repeat("ab ", 500), "\U0001f600ZZ", "thecat cat thethe� � the\u00a0and\u3000the\u200bdog " + strings.Repeat("the", 50)} {
			want, err := own.Encode(text)
			got, failed := again.Encode(text)
			if err != nil { // a Vocab without an unknown id
				want, err = own.Encode(known(text))
			}
			if err != nil || failed != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q has ids %v, %v, want %v, %v", name, text, got, failed, want, err)
			}
			spelled, _ := own.Decode(want)
			if back, err := again.Decode(got); err != nil || back != spelled {
				t.Errorf("%s: decoded %q, %v, want %q", name, back, err, spelled)
			}
		}
	}
	must.Fail(t, WritePublished(&bytes.Buffer{}, made(Words)), "lower-case form of an unknown word: use tokens, characters or bpe")
}
