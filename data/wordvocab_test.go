package data

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func splitWords(t *testing.T, text string) []string {
	t.Helper()
	words := []string{}
	if err := eachWord(text, func(word []byte) { words = append(words, string(word)) }); err != nil {
		t.Fatal(err)
	}
	return words
}

func TestWordsOfText(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{}},
		{"white space", " \t\r\n\u00a0\u2028\u3000", []string{}},
		{"a sentence", "Well, it's 5 o'clock!", []string{"well", ",", "it", "'", "s", "5", "o", "'", "clock", "!"}},
		{"each character of punctuation", "no... (yes)", []string{"no", ".", ".", ".", "(", "yes", ")"}},
		{"numbers", "3.14 x2 ½ ٣", []string{"3", ".", "14", "x2", "½", "٣"}},
		{"other letters", "ÉTÉ Straße ДОМ 東京", []string{"été", "straße", "дом", "東京"}},
		{"accents of their own", "cafe\u0301s हिन्दी", []string{"cafe\u0301s", "हिन्दी"}},
		{"an accent alone", "\u0301 a \u0301b", []string{"\u0301", "a", "\u0301b"}},
		{"symbols", "a+b=€5 _x", []string{"a", "+", "b", "=", "€", "5", "_", "x"}},
		{"emoji", "so 😀😀 ❤\ufe0f", []string{"so", "😀", "😀", "❤\ufe0f"}},
		{"control and format characters", "\ufeffa\x00b\u200dc", []string{"a", "b", "c"}},
		{"the replacement character", "a\ufffdb", []string{"a", "\ufffd", "b"}},
	} {
		if got := splitWords(t, tc.text); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestEachCharacterIsItsWord: what text becomes stays as it is when it becomes words again.
func TestEachCharacterIsItsWord(t *testing.T) {
	end := rune(unicode.MaxRune + 1)
	if testing.Short() {
		end = 0x20000 // what comes then are Han characters, mostly
	}
	for r := range end {
		if !utf8.ValidRune(r) {
			continue
		}
		words := splitWords(t, string(r))
		if len(words) > 1 || len(words) == 1 && !slices.Equal(splitWords(t, words[0]), words) {
			t.Fatalf("%U becomes %q", r, words)
		}
		if len(words) == 0 && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) {
			t.Fatalf("%U is dropped", r)
		}
	}
}

func TestCollectWords(t *testing.T) {
	texts := []string{"b a c", "C b.", "", "b d a"}
	for _, tc := range []struct {
		name          string
		texts         []string
		most, atLeast int
		want          []string
		wantErr       string
	}{
		{"all", texts, 0, 0, []string{"b", "a", "c", ".", "d"}, ""},
		{"once or more", texts, 0, 1, []string{"b", "a", "c", ".", "d"}, ""},
		{"twice or more", texts, 0, 2, []string{"b", "a", "c"}, ""},
		{"at most two", texts, 2, 0, []string{"b", "a"}, ""},
		{"at most more than there are", texts, 9, 3, []string{"b"}, ""},
		{"nothing often enough", texts, 0, 4, nil, "no word occurs at least 4 times in 4 texts with 5 words"},
		{"no texts", nil, 0, 0, nil, "in 0 texts"},
		{"no words", []string{" "}, 0, 0, nil, "no word"},
		{"not UTF-8", []string{"a", "ab\xff"}, 0, 0, nil, "text 1: not UTF-8: the byte at offset 2"},
		{"a limit below 0", texts, -1, 0, nil, "got -1 and 0"},
		{"a number below 0", texts, 0, -1, nil, "got 0 and -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := CollectWords(tc.texts, tc.most, tc.atLeast)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Words(); !slices.Equal(got, tc.want) || v.Len() != len(tc.want)+1 || v.Unknown() != len(tc.want) {
				t.Errorf("got %q, %d ids, unknown %d; want %q", got, v.Len(), v.Unknown(), tc.want)
			}
		})
	}
}

func TestWordVocab(t *testing.T) {
	v, err := NewWordVocab([]string{"heed", ",", "été"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text string
		ids  []int
		back string
	}{
		{"", []int{}, ""},
		{"Heed,heed ÉTÉ", []int{0, 1, 0, 2}, "heed , heed été"},
		{"heedless, gorgonia", []int{3, 1, 3}, "\ufffd , \ufffd"},
	} {
		ids, err := v.Encode(tc.text)
		if err != nil || !slices.Equal(ids, tc.ids) || ids == nil {
			t.Errorf("Encode(%q) = %v, %v; want %v", tc.text, ids, err, tc.ids)
		}
		if back, err := v.Decode(ids); err != nil || back != tc.back {
			t.Errorf("Decode(%v) = %q, %v; want %q", ids, back, err, tc.back)
		}
	}
	_, err = v.Encode("été\xff")
	var invalid *InvalidUTF8Error
	if !errors.As(err, &invalid) || invalid.Offset != 5 {
		t.Errorf("got %v", err)
	}
	for _, id := range []int{-1, 4, math.MaxInt} {
		_, err := v.Decode([]int{0, id})
		wantError(t, err, "at position 1 isn't one of 3 words")
	}
}

func TestNewWordVocabErrors(t *testing.T) {
	for _, tc := range []struct {
		name    string
		words   []string
		wantErr string
	}{
		{"none", nil, "at least one word"},
		{"a duplicate", []string{"a", "b", "a"}, `"a" as words 0 and 2`},
		{"an empty word", []string{"a", ""}, `word 1 of a vocabulary is "", which as text becomes []`},
		{"upper case", []string{"Heed"}, `["heed"]`},
		{"two words", []string{"new york"}, `["new" "york"]`},
		{"white space", []string{"a "}, `is "a "`},
		{"invalid UTF-8", []string{"a", "b\xff"}, "word 1 of a vocabulary: not UTF-8: the byte at offset 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewWordVocab(tc.words)
			wantError(t, err, tc.wantErr)
		})
	}
}

// TestWordVocabSaved: it is its words, as plain data, and doesn't change with them.
func TestWordVocabSaved(t *testing.T) {
	v, err := CollectWords([]string{"\"So\" said <she> & he \u2028 \ufffd cafe\u0301"}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := json.Marshal(v.Words())
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	if err := json.Unmarshal(saved, &words); err != nil {
		t.Fatal(err)
	}
	back, err := NewWordVocab(words)
	if err != nil {
		t.Fatal(err)
	}
	words[0], v.Words()[1] = "changed", "changed"
	if !reflect.DeepEqual(back, v) || slices.Contains(v.Words(), "changed") {
		t.Errorf("%q became %q", v.Words(), back.Words())
	}
}

func TestZeroWordVocab(t *testing.T) {
	var v WordVocab
	if ids, err := v.Encode("a b"); err != nil || !slices.Equal(ids, []int{0, 0}) || v.Len() != 1 || len(v.Words()) != 0 {
		t.Errorf("got %v, %v of %d ids", ids, err, v.Len())
	}
}

func FuzzWordVocab(f *testing.F) {
	f.Add("Well, it's a b.", "A b it")
	f.Add("e\u0301\u0301 ❤\ufe0f\u200d", "\u0301e \ufffd")
	f.Add("İ ǅ ⅷ", "\xe4\xb8")
	f.Add("\xff", "")
	f.Fuzz(func(t *testing.T, text, other string) {
		v, err := CollectWords([]string{text}, 0, 0)
		if !utf8.ValidString(text) {
			var invalid *InvalidUTF8Error
			if !errors.As(err, &invalid) || utf8.ValidString(text[:invalid.Offset+1]) || !utf8.ValidString(text[:invalid.Offset]) {
				t.Fatalf("CollectWords(%q): %v", text, err)
			}
			return
		}
		if err != nil {
			if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) }) {
				t.Fatalf("CollectWords(%q): %v", text, err)
			}
			return
		}
		ids, err := v.Encode(text)
		if err != nil || slices.Contains(ids, v.Unknown()) {
			t.Fatalf("%q became %v, %v", text, ids, err)
		}
		spaced, err := v.Decode(ids)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := v.Encode(spaced); err != nil || !slices.Equal(again, ids) {
			t.Fatalf("%q became %v, and as %q %v, %v", text, ids, spaced, again, err)
		}
		ids, err = v.Encode(other)
		if (err == nil) != utf8.ValidString(other) {
			t.Fatalf("Encode(%q): %v", other, err)
		}
		for _, id := range ids {
			if id < 0 || id >= v.Len() {
				t.Fatalf("%q has id %d of %d", other, id, v.Len())
			}
		}
	})
}
