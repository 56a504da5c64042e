package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

// ofEach returns tokenizers for all units, learned from text.
func ofEach(t testing.TB, text string) map[Units]Tokenizer {
	t.Helper()
	toks := map[Units]Tokenizer{}
	for units, size := range map[Units]int{Characters: 0, Tokens: 0, Words: 0, BPE: 270} {
		toks[units] = must.Get(New(units, slices.Values([]string{text}), size))(t)
	}
	return toks
}

func TestTokenize(t *testing.T) {
	toks := ofEach(t, "the the the été")
	for _, tc := range []struct {
		name  string
		units Units
		text  string
		want  []string // the part of the text for each id
	}{
		{"no text", Characters, "", nil},
		{"no text", Tokens, "", nil},
		{"no text", BPE, "", nil},
		{"several bytes", Characters, "té世😀", []string{"t", "é", "世", "😀"}},
		{"U+FFFD and NUL", Characters, "\ufffd\x00", []string{"\ufffd", "\x00"}},
		{"white space between", Tokens, "\u3000the  été\n\tother the \u0085", []string{"the", "été", "other", "the"}},
		{"a token in another", Tokens, "thethe the", []string{"thethe", "the"}},
		{"no text", Words, "", nil},
		{"words and marks", Words, "The 'été',\u3000the99..cafe\u0301 ", []string{"The", "'", "été", "'", ",", "the", "99", ".", ".", "cafe\u0301"}},
		{"a letter per word", Words, "東京the", []string{"東", "京", "the"}},
		{"merged", BPE, "the the", []string{"the", " the"}},
		{"white space", BPE, " \n the", []string{" ", "\n", " the"}},
		{"characters of several tokens", BPE, "a世é😀b", []string{"a", "世", "世", "世", "é", "😀", "😀", "😀", "😀", "b"}},
	} {
		tok := toks[tc.units]
		tokens := must.Get(tok.Tokenize(tc.text, Options{}))(t)
		var got []string
		var ids []int
		for _, token := range tokens {
			got, ids = append(got, tc.text[token.Start:token.End]), append(ids, token.ID)
		}
		if want, err := tok.Encode(tc.text); err != nil || !slices.Equal(ids, want) || !slices.Equal(got, tc.want) {
			t.Errorf("%s, %s: parts %q and ids %v, want %q and %v", tc.units, tc.name, got, ids, tc.want, want)
		}
	}
	for units, tok := range toks {
		if _, err := tok.Tokenize("a\xff", Options{}); !errors.As(err, new(*InvalidUTF8Error)) {
			t.Errorf("%s: got %v, want an InvalidUTF8Error", units, err)
		}
	}
	if _, err := must.Get(NewVocab("ab"))(t).Tokenize("abc", Options{}); !errors.As(err, new(*UnknownSymbolError)) {
		t.Errorf("got %v, want an UnknownSymbolError", err)
	}
}

// TestNoSpecial checks that Heed's own tokenizers have no special tokens, with and without Options.Special.
func TestNoSpecial(t *testing.T) {
	for units, tok := range ofEach(t, "a <unk> <|endoftext|> \ufffd") {
		if special := tok.Special(); len(special) > 0 {
			t.Errorf("%s has the special tokens %v, want none", units, special)
		}
		text := "<unk><|endoftext|> \ufffd"
		plain, err := tok.Tokenize(text, Options{})
		asked, askedErr := tok.Tokenize(text, Options{Special: true})
		if err := errors.Join(err, askedErr); err != nil || !slices.Equal(plain, asked) {
			t.Errorf("%s: tokens %v without Options.Special, but %v with it; error %v", units, plain, asked, err)
		}
	}
}

func FuzzTokenize(f *testing.F) {
	f.Add("the cat, été 世界 😀😀", "  the 世\u0085\u3000x 😀 ")
	f.Add("\ufffd a", "\ufffd\x00\xff")
	f.Fuzz(func(t *testing.T, text, other string) {
		if len(text) > 200 || len(other) > 400 || !utf8.ValidString(text) {
			return
		}
		for units, tok := range ofEach(t, "a "+text) {
			ids, err := tok.Encode(other)
			tokens, tokensErr := tok.Tokenize(other, Options{})
			if (err == nil) != (tokensErr == nil) || (err == nil) != utf8.ValidString(other) {
				t.Fatalf("%s: %q: %v and %v", units, other, err, tokensErr)
			}
			if err != nil {
				continue
			}
			last := Token{}
			for i, token := range tokens {
				switch {
				case len(tokens) != len(ids) || token.ID != ids[i]:
					t.Fatalf("%s: %q: Encode returns %v, Tokenize %v", units, other, ids, tokens)
				case token.Start >= token.End || token.End > len(other) || !utf8.ValidString(other[token.Start:token.End]):
					t.Fatalf("%s: %q: the part of %v isn't whole characters", units, other, token)
				case token.Start < last.End:
					if shared := other[token.Start:token.End]; units != BPE || token.Start < last.Start || token.End < last.End || utf8.RuneCountInString(other[token.Start:last.End]) != 1 {
						t.Fatalf("%s: %q: %v, %q, comes after %v", units, other, token, shared, last)
					}
				case token.Start > last.End && (units != Tokens && units != Words || len(strings.Fields(other[last.End:token.Start])) > 0):
					t.Fatalf("%s: %q: a gap between %v and %v", units, other, last, token)
				}
				last = token
			}
			if rest := other[last.End:]; len(strings.Fields(rest)) > 0 || rest != "" && units != Tokens && units != Words {
				t.Fatalf("%s: %q: text is missing after %v", units, other, last)
			}
		}
	})
}
