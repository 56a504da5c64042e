package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

func TestNewVocab(t *testing.T) {
	tests := []struct{ name, symbols, wantErr string }{
		{"one", "a", ""},
		{"in any order", "zéa世", ""},
		{"control characters", "\x00\n\r\t", ""},
		{"the replacement character itself", "a\ufffd", ""},
		{"none", "", "at least one symbol"},
		{"a duplicate", "abca", "'a' as symbols 0 and 3"},
		{"a duplicate beyond ASCII", "éaé", "'é' as symbols 0 and 2"},
		{"invalid UTF-8", "ab\xff", "byte at offset 2"},
		{"cut UTF-8", "ab\xe4\xb8", "byte at offset 2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v, err := NewVocab(tc.symbols)
			if must.Match(t, err, tc.wantErr) {
				return
			}
			if v.Symbols() != tc.symbols || v.Len() != utf8.RuneCountInString(tc.symbols) {
				t.Errorf("got %d symbols %q", v.Len(), v.Symbols())
			}
			for i, id := range must.Get(v.Encode(tc.symbols))(t) {
				if id != i {
					t.Errorf("symbol %d has id %d, want its index", i, id)
				}
			}
		})
	}
}

func TestEncodeUnknownSymbol(t *testing.T) {
	v := must.Get(NewVocab("aé世"))(t)
	_, err := v.Encode("世éx")
	var unknown *UnknownSymbolError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v", err)
	}
	if want := (UnknownSymbolError{Symbol: 'x', Position: 2, Known: "aé世"}); *unknown != want {
		t.Errorf("got %+v, want %+v", *unknown, want)
	}
	must.Fail(t, err, `symbol 'x' at position 2 (from 0) isn't one of the 3 known: "aé世"`)

	var many []rune
	for r := 'Ā'; len(many) < 101; r++ {
		many = append(many, r)
	}
	v = must.Get(NewVocab(string(many)))(t)
	_, err = v.Encode("\n")
	must.Fail(t, err, `symbol '\n' at position 0 (from 0) isn't one of the 101 known`)
	if strings.Contains(err.Error(), "Ā") {
		t.Errorf("got %v, want an error without a list of 101 symbols", err)
	}
}

func FuzzVocab(f *testing.F) {
	f.Add("abc", "cab")
	f.Add("é世\ufffd", "世\xff")
	f.Add("aa", "")
	f.Add("\x00\xf0\x9f", "\x00")
	f.Fuzz(func(t *testing.T, symbols, s string) {
		v, err := NewVocab(symbols)
		if err != nil {
			if utf8.ValidString(symbols) && symbols != "" && len(distinct([]rune(symbols))) == utf8.RuneCountInString(symbols) {
				t.Fatalf("NewVocab(%q): %v", symbols, err)
			}
			return
		}
		if v.Symbols() != symbols {
			t.Fatalf("symbols are %q, want %q", v.Symbols(), symbols)
		}
		ids, err := v.Encode(s)
		if (err == nil) != (utf8.ValidString(s) && onlyOf(s, symbols)) {
			t.Fatalf("Encode(%q) with %q: %v", s, symbols, err)
		}
		if err != nil {
			_ = err.Error()
			return
		}
		if back, err := v.Decode(ids); err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
	})
}

func onlyOf(s, symbols string) bool {
	for _, r := range s {
		if !strings.ContainsRune(symbols, r) {
			return false
		}
	}
	return true
}

// distinct returns the characters of s, sorted, each once.
func distinct(s []rune) []rune {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}
