package tokenizer

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

func TestNew(t *testing.T) {
	for _, tc := range []struct {
		name    string
		units   Units
		texts   []string
		size    int
		want    string // texts of all ids, separated by spaces
		wantErr string
	}{
		{"characters by code point", Characters, []string{"世bé", "", "a\nb"}, 0, "\n a b é 世 �", ""},
		{"the commonest characters", Characters, []string{"caabbb", "cz"}, 4, "a b c �", ""},
		{"equally common characters", Characters, []string{"zyx"}, 3, "x y �", ""},
		{"more room than characters", Characters, []string{"ba"}, 9, "a b �", ""},
		{"unreadable characters are unknown", Characters, []string{"a\ufffd\ufffd"}, 2, "a �", ""},
		{"tokens by count", Tokens, []string{"b a c", " b\tc\u00a0\u3000b ", "", "é"}, 0, "b c a é �", ""},
		{"the commonest tokens", Tokens, []string{"b a c c"}, 3, "c a �", ""},
		{"tokens as they are", Tokens, []string{"It's it's, \u200b x\u0000"}, 0, "It's it's, x\u0000 \u200b �", ""},
		{"unreadable tokens are unknown", Tokens, []string{"a \ufffd \ufffd b\ufffd"}, 0, "a b\ufffd �", ""},
		{"words by count", Words, []string{"b, a b", "a. b", "東東 é"}, 0, "b a 東 , . é �", ""},
		{"words as they are", Words, []string{"It's it's x2 2"}, 0, "' 2 s It it x �", ""},
		{"the commonest words", Words, []string{"b a c c"}, 3, "c a �", ""},
		{"unreadable marks are unknown", Words, []string{"a \ufffd\ufffdb"}, 0, "a b �", ""},
		{"no words", Words, []string{" \n"}, 0, "", "can't make a tokenizer for words from 1 texts: a vocabulary needs at least one token"},
		{"no texts", Characters, nil, 0, "", "can't make a tokenizer for characters from 0 texts: a vocabulary needs at least one symbol"},
		{"only unknown characters", Characters, []string{"\ufffd", ""}, 0, "", "from 2 texts"},
		{"no tokens", Tokens, []string{" \n"}, 0, "", "can't make a tokenizer for tokens from 1 texts: a vocabulary needs at least one token"},
		{"not UTF-8", Tokens, []string{"a", "ab\xff", "b"}, 0, "", "text 1 (from 0): not UTF-8: the byte at offset 2"},
		{"unknown units", "letters", nil, 0, "", `must be characters, tokens, words or bpe, got "letters"`},
		{"room for the unknown id only", Tokens, []string{"a"}, 1, "", "at least 2, got 1"},
		{"a size below 0", Tokens, []string{"a"}, -1, "", "got -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tok, err := New(tc.units, slices.Values(tc.texts), tc.size)
			if must.Match(t, err, tc.wantErr) {
				return
			}
			var got []string
			for id := range tok.Len() {
				got = append(got, must.Get(tok.Decode([]int{id}))(t))
			}
			if want := strings.Split(tc.want, " "); !slices.Equal(got, want) || tok.Unknown() != len(want)-1 {
				t.Errorf("got %q with unknown id %d; want %q, the last one unknown", got, tok.Unknown(), want)
			}
		})
	}
}

func TestEncodeDecode(t *testing.T) {
	characters := must.Get(New(Characters, slices.Values([]string{"aé世"}), 0))(t)
	tokens := must.Get(New(Tokens, slices.Values([]string{"B AH0 B"}), 0))(t)
	words := must.Get(New(Words, slices.Values([]string{"Bob the bob THE bob and"}), 0))(t) // bob, Bob, THE, and, the
	vocab := must.Get(NewVocab("aé世b\ufffd"))(t)
	for _, tc := range []struct {
		tok  Tokenizer
		text string
		ids  []int
		back string
	}{
		{characters, "", []int{}, ""},
		{characters, "世 aé", []int{2, 3, 0, 1}, "世�aé"},
		{characters, "\x00\ufffd😀", []int{3, 3, 3}, "���"},
		{tokens, " \n", []int{}, ""},
		{tokens, "  AH0 B\tB\u2028b", []int{1, 0, 0, 2}, "AH0 B B �"},
		{tokens, "\ufffd AH0\ufeff", []int{2, 2}, "� �"}, // a byte-order mark isn't white space
		{tokens, "B\u0085B", []int{0, 0}, "B B"},         // the next-line character is white space
		{words, "\u3000", []int{}, ""},
		{words, "Bob,\tBOB", []int{1, 5, 0}, "Bob � bob"}, // BOB is unknown, so it gets the id of bob
		{words, "And the The THE éÉ", []int{3, 4, 4, 2, 5}, "and the the THE �"},
		{vocab, "", []int{}, ""},
		{vocab, "ab", []int{0, 3}, "ab"},
		{vocab, "世é世", []int{2, 1, 2}, "世é世"},
		{vocab, "\ufffd", []int{4}, "\ufffd"},
	} {
		ids, err := tc.tok.Encode(tc.text)
		if err != nil || !slices.Equal(ids, tc.ids) || ids == nil {
			t.Errorf("Encode(%q) = %v, %v; want %v", tc.text, ids, err, tc.ids)
		}
		if back, err := tc.tok.Decode(ids); err != nil || back != tc.back {
			t.Errorf("Decode(%v) = %q, %v; want %q", ids, back, err, tc.back)
		}
	}
	for _, tok := range []Tokenizer{characters, tokens, words, vocab, newTestBPE(t, 256, "a")} {
		_, err := tok.Encode("a\xff") // isn't U+FFFD, although range returns that for an invalid byte
		var invalid *InvalidUTF8Error
		if !errors.As(err, &invalid) || invalid.Offset != 1 {
			t.Errorf("got %v", err)
		}
		for _, id := range []int{-1, tok.Len(), math.MaxInt} {
			must.Refuse(tok.Decode([]int{0, id}))(t, "at position 1 isn't one of")
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	f.Add("Well, it's a b.", "A b it")
	f.Add("e\u0301 ❤\ufe0f\u200d \x85", "\u0085\u0301e \ufffd")
	f.Add("\ufffd", "")
	f.Add("\xff", "\xe4\xb8")
	f.Fuzz(func(t *testing.T, text, other string) {
		for _, units := range []Units{Characters, Tokens, Words} {
			tok, err := New(units, slices.Values([]string{text}), 0)
			if err != nil {
				var invalid *InvalidUTF8Error
				if errors.As(err, &invalid) == utf8.ValidString(text) || len(strings.Trim(text, "\ufffd \x00")) > 0 && utf8.ValidString(text) && strings.TrimSpace(strings.ReplaceAll(text, "\ufffd", "")) != "" {
					t.Fatalf("%s of %q: %v", units, text, err)
				}
				continue
			}
			ids := must.Get(tok.Encode(text))(t)
			back, err := tok.Decode(ids)
			want := text
			switch units {
			case Tokens:
				want = strings.Join(strings.Fields(text), " ")
			case Words: // only white space may have changed
				want, back = strings.Join(strings.Fields(text), ""), strings.Join(strings.Fields(back), "")
			}
			if err != nil || back != want {
				t.Fatalf("%s: Encode(%q) = %v, and Decode of these ids = %q, %v", units, text, ids, back, err)
			}
			if ids, err = tok.Encode(other); (err == nil) != utf8.ValidString(other) {
				t.Fatalf("Encode(%q): %v", other, err)
			}
			if len(ids) > 0 && (slices.Min(ids) < 0 || slices.Max(ids) >= tok.Len()) {
				t.Fatalf("%q: ids %v, want ids from 0 to below %d", other, ids, tok.Len())
			}
		}
	})
}
