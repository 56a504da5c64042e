package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var published = flag.String("published", "testdata/published", "folder of published families' tokenizers with the reference library's results, from testdata/published.py")

// A family is a tokenizer like a published one, with the reference library's results for texts.
type family struct {
	name      string
	Tokenizer json.RawMessage
	Texts     []familyText
	Decoded   []struct { // random ids
		IDs  []int
		Text string
	}
	*Pipeline
}

type familyText struct {
	Text             string
	Trap             string // how the text is easily got wrong, or ""
	Plain, Special   familyTokens
	Input, Pair      familyTokens // Pair is this text and the one before; it has no parts
	Decoded, Skipped string       // with and without the names of special tokens
}

type familyTokens struct{ IDs, Types, Starts, Ends []int }

func (t *familyTokens) add(token Token) {
	t.IDs, t.Starts, t.Ends = append(t.IDs, token.ID), append(t.Starts, token.Start), append(t.Ends, token.End)
}

func (t familyTokens) equal(other familyTokens) bool {
	return slices.Equal(t.IDs, other.IDs) && slices.Equal(t.Types, other.Types) && slices.Equal(t.Starts, other.Starts) && slices.Equal(t.Ends, other.Ends)
}

// families reads all families of the folder.
func families(t testing.TB) []*family {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*published, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tokenizers in %s: %v", *published, err)
	}
	var all []*family
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".json.gz"); name != "characters" {
			f := &family{name: name}
			readGzip(t, file, f)
			tok, err := Read(bytes.NewReader(f.Tokenizer))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			f.Pipeline = tok.(*Pipeline)
			for i := range f.Texts {
				if c := &f.Texts[i]; c.Special.IDs == nil {
					c.Special = c.Plain
				}
			}
			all = append(all, f)
		}
	}
	return all
}

// readGzip decodes a fixture: JSON, compressed with gzip.
func readGzip(t testing.TB, path string, into any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(in)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPublished compares ids, parts of the text and decoded text with the reference library's. The library may have
// newer tables of Unicode than Go. So texts with characters that Go's tables lack may differ, if they are few.
func TestPublished(t *testing.T) {
	traps := map[string]bool{}
	for _, f := range families(t) {
		t.Run(f.name, func(t *testing.T) {
			wrong, differ := 0, 0
			newer := map[rune]bool{}
			before := f.Texts[0].Text
			for _, c := range f.Texts {
				err := f.compare(c, before)
				missing := unassigned(before + c.Text)
				before = c.Text
				switch {
				case c.Trap != "":
					traps[f.name+c.Trap] = true
					t.Run(c.Trap, func(t *testing.T) {
						if err != nil {
							t.Error(err)
						}
					})
				case err != nil && len(missing) > 0:
					differ++
					for _, r := range missing {
						newer[r] = true
					}
				case err != nil:
					if wrong++; wrong < 6 {
						t.Error(err)
					}
				}
			}
			invalid := regexp.MustCompile("\ufffd+") // the library writes one for all bytes of half a character
			for _, c := range f.Decoded {
				if text, err := f.Decode(c.IDs); err != nil || invalid.ReplaceAllString(valid(text), "?") != invalid.ReplaceAllString(c.Text, "?") {
					t.Errorf("Decode(%v) = %q, %v; want %q", c.IDs, valid(text), err, c.Text)
				}
			}
			if wrong > 5 {
				t.Errorf("%d of %d texts are wrong", wrong, len(f.Texts))
			}
			if differ > 0 {
				all := slices.Sorted(maps.Keys(newer))
				t.Logf("%d of %d texts differ, because Unicode %s lacks some of %d characters, such as %U", differ, len(f.Texts), unicode.Version, len(all), all[:min(20, len(all))])
			}
			if differ > 1+len(f.Texts)/500 {
				t.Errorf("%d of %d texts differ: too many", differ, len(f.Texts))
			}
		})
	}
	if least := 47; len(traps) < least && *published == "testdata/published" {
		t.Errorf("%d traps, want %d or more", len(traps), least)
	}
}

// unassigned returns the characters of a text that Go's tables of Unicode lack.
func unassigned(text string) []rune {
	var all []rune
	for _, r := range text {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co) {
			all = append(all, r)
		}
	}
	return all
}

// compare returns an error if a result for a text differs from the reference library's.
func (f *family) compare(c familyText, before string) error {
	for _, special := range []bool{false, true} {
		tokens, err := f.Tokenize(c.Text, Options{Special: special})
		if err != nil {
			return err
		}
		var got familyTokens
		for _, token := range tokens {
			got.add(token)
		}
		want := c.Plain
		if special {
			want = c.Special
		}
		if !got.equal(want) {
			return fmt.Errorf("Tokenize(%q) with Special %t:\n got %v\nwant %v", c.Text, special, got, want)
		}
	}
	for _, pair := range [][]string{nil, {before}} {
		in, err := f.Input(c.Text, pair...)
		if err != nil {
			return err
		}
		got, want := familyTokens{Types: in.Types}, c.Input
		for _, token := range in.Tokens {
			got.add(token)
		}
		if pair != nil {
			got.Starts, got.Ends, want = nil, nil, c.Pair
		}
		if !got.equal(want) {
			return fmt.Errorf("Input(%q, %q):\n got %v\nwant %v", c.Text, pair, got, want)
		}
	}
	if text, err := f.Decode(c.Special.IDs); err != nil || valid(text) != c.Decoded {
		return fmt.Errorf("Decode(%v) = %q, %v; want %q", c.Special.IDs, valid(text), err, c.Decoded)
	}
	return nil
}

var unicode8 = flag.Bool("unicode8", false, "write unicode8.go from testdata/published/characters.json.gz")

// TestCharacters compares the classes of all characters with the reference library's, but for characters that Go's
// tables lack.
func TestCharacters(t *testing.T) {
	classes := map[string]json.RawMessage{}
	readGzip(t, "testdata/published/characters.json.gz", &classes)
	tables := "// Code generated by go test -run TestCharacters -unicode8. DO NOT EDIT.\n\npackage tokenizer\n\nimport \"unicode\"\n"
	for _, class := range []struct {
		name        string
		has         func(r rune) bool
		table, text string // of the characters for which Go's tables differ; none if ""
		in          func(r rune) bool
	}{
		{"punctuation", isPunctuation, "otherPunctuation", "P", unicode.IsPunct},
		{"marks", func(r rune) bool { return without(r, unicode.M, otherMarks) == "" }, "otherMarks", "M", unicode.IsMark},
		{"nonspacing", func(r rune) bool { return without(r, unicode.Mn, otherNonspacing) == "" }, "otherNonspacing", "Mn", func(r rune) bool { return unicode.Is(unicode.Mn, r) }},
		{"removed", func(r rune) bool { return cleaned(r) == "" }, "otherControls", "Cc, Cf or Co", func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) || r == utf8.RuneError }},
		{"spaces", func(r rune) bool { return cleaned(r) == " " }, "", "", nil},
		{"words", isWord, "", "", nil},
		{"numbers", unicode.IsNumber, "", "", nil},
	} {
		var ranges [][2]rune
		if err := json.Unmarshal(classes[class.name], &ranges); err != nil || len(ranges) == 0 {
			t.Fatalf("%s: %v", class.name, err)
		}
		theirs := map[rune]bool{}
		for _, r := range ranges {
			for c := r[0]; c <= r[1]; c++ {
				theirs[c] = true
			}
		}
		var differ [2][]string // below and above 1<<16
		first := rune(-1)
		for r := rune(0); r <= unicode.MaxRune+1; r++ {
			valid := utf8.ValidRune(r)
			if valid && class.has(r) != theirs[r] && len(unassigned(string(r))) == 0 && !*unicode8 {
				t.Errorf("%s: %U is %t, want %t", class.name, r, class.has(r), theirs[r])
			}
			other := valid && class.table != "" && r >= utf8.RuneSelf && class.in(r) != theirs[r]
			if first >= 0 && (!other || r == 1<<16) {
				i := min(1, first>>16)
				differ[i] = append(differ[i], fmt.Sprintf("\t\t{%#04x, %#04x, 1},\n", first, r-1))
				first = -1
			}
			if other && first < 0 {
				first = r
			}
		}
		if class.table != "" {
			tables += fmt.Sprintf("\n// %s has the characters that are in %s for either Go or the reference library, but not for both.\nvar %[1]s = &unicode.RangeTable{\n"+
				"\tR16: []unicode.Range16{\n%[3]s\t},\n\tR32: []unicode.Range32{\n%s\t},\n}\n", class.table, class.text, strings.Join(differ[0], ""), strings.Join(differ[1], ""))
		}
	}
	var lowered map[string]string
	if err := json.Unmarshal(classes["lower"], &lowered); err != nil || len(lowered) == 0 {
		t.Fatal(err)
	}
	for r := range unicode.MaxRune + 1 {
		want, ok := lowered[string(r)]
		if !ok {
			want = string(r)
		}
		if utf8.ValidRune(r) && lower(r) != want && len(unassigned(string(r))) == 0 {
			t.Errorf("%U in lower case is %q, want %q", r, lower(r), want)
		}
	}
	if *unicode8 {
		if err := os.WriteFile("unicode8.go", []byte(tables), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
