package tokenizer

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/heed-go/heed/internal/must"
)

var (
	fixture = flag.String("fixture", "testdata/tokenizers.json", "file of tokenizers and texts with another library's results")
	texts   = flag.Int("write", 0, "write this number of texts per tokenizer to the fixture, for testdata/tokenizers.mjs")
)

// A set is a tokenizer's file, and texts with another library's results.
type set struct {
	Tokenizer json.RawMessage `json:"tokenizer"`
	Texts     []tokenizedText `json:"texts"`
}

type tokenizedText struct {
	Text    string `json:"text"`
	IDs     []int  `json:"ids"`
	Decoded string `json:"decoded"`
}

// TestTokenizersAgree compares ids and text with those of @huggingface/tokenizers, from testdata/tokenizers.mjs.
func TestTokenizersAgree(t *testing.T) {
	if *texts > 0 {
		writeTokenizerSets(t)
		return
	}
	file := must.Get(os.ReadFile(*fixture))(t)
	var sets []set
	must.Do(t, json.Unmarshal(file, &sets))
	if len(sets) != 3 {
		t.Fatalf("%d tokenizers, want 3", len(sets))
	}
	for i, set := range sets {
		tok := must.Get(Read(bytes.NewReader(set.Tokenizer)))(t)
		if len(set.Texts) < 100 {
			t.Errorf("tokenizer %d: %d texts, want 100 or more", i, len(set.Texts))
		}
		for _, want := range set.Texts {
			ids, err := tok.Encode(want.Text)
			if err != nil || !slices.Equal(ids, want.IDs) {
				t.Errorf("tokenizer %d: Encode(%q) = %v, %v; want %v", i, want.Text, ids, err, want.IDs)
			}
			if text, err := tok.Decode(want.IDs); err != nil || text != want.Decoded {
				t.Errorf("tokenizer %d: Decode(%v) = %q, %v; want %q", i, want.IDs, text, err, want.Decoded)
			}
		}
	}
}

func writeTokenizerSets(t *testing.T) {
	lines := strings.SplitAfter(string(must.Get(os.ReadFile("../../../shared/data/tinyshakespeare.txt"))(t)), "\n")
	rng := rand.New(rand.NewPCG(1, 2))
	var sets []set
	for _, units := range []Units{Characters, Tokens, BPE} {
		tok := must.Get(New(units, slices.Values(append(lines, "été 東京 12 345 😀\r\n  x\t\t")), 700))(t)
		set := set{Tokenizer: tokenizerFile(t, tok)}
		for i := range *texts {
			text := lines[rng.IntN(len(lines))]
			if i%2 == 1 {
				text = strangeText(rng, text)
			}
			set.Texts = append(set.Texts, tokenizedText{Text: text})
		}
		sets = append(sets, set)
	}
	must.Do(t, os.WriteFile(*fixture, must.Get(json.Marshal(sets))(t), 0o644))
}

// strangeText returns a random text that includes parts of other. It leaves out two characters: U+0085 isn't white
// space in JavaScript, and U+FEFF is white space only there.
func strangeText(rng *rand.Rand, other string) string {
	pieces := []func() string{
		func() string { return other[:rng.IntN(len(other)+1)] }, // ASCII
		func() string {
			ends := []string{"\n", "\r\n", "\r", " ", "  ", "\t", "\v", "\f", "\u00a0", "\u2028", "\u3000", "\u200b", " \n "}
			return strings.Repeat(ends[rng.IntN(len(ends))], 1+rng.IntN(3))
		},
		func() string {
			words := []string{"'s", "'S", "'t", "'re", "'ve", "'ll", "'d", "'m", "''", "' s", "it's", "don't'", "\u2019s", "été", "e\u0301te\u0301", "東京都", "हिन्दी", "العربية",
				"👩‍👩‍👧", "❤\ufe0f", "🇩🇪", "½²٣१", "Ⅷ", "12,345.67", "\x00\x1b\x7f", "\u00ad", "_", "ǅß", "�", "\ue000"}
			return words[rng.IntN(len(words))]
		},
		func() string { return string(rune(rng.IntN(0x250))) },
		func() string { return string(rune(rng.IntN(unicode.MaxRune + 1))) },
	}
	var text strings.Builder
	for range rng.IntN(9) {
		text.WriteString(pieces[rng.IntN(len(pieces))]())
	}
	return strings.Map(func(r rune) rune {
		if r == '\u0085' || r == '\ufeff' || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf) {
			return 'x'
		}
		return r
	}, text.String())
}
