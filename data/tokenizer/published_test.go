package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

var familyFolder = flag.String("published", "testdata/published", "folder of published families' tokenizers with the reference library's results, from testdata/published.py")

// A family is a tokenizer like a published one, with the reference library's results for texts.
type family struct {
	name      string
	Tokenizer json.RawMessage
	Texts     []familyText
	Decoded   []struct { // texts of random ids
		IDs  []int
		Text string
	}
	*Pipeline
}

type familyText struct {
	Text             string
	Trap             string // what a tokenizer easily gets wrong with this text, or ""
	Plain, Special   familyTokens
	Input, Pair      familyTokens // Pair is for this text and the one before, and has no Starts and Ends
	Decoded, Skipped string       // Skipped has no names of special tokens
}

type familyTokens struct{ IDs, Types, Starts, Ends []int }

func (t *familyTokens) add(tokens []Token) {
	for _, token := range tokens {
		t.IDs, t.Starts, t.Ends = append(t.IDs, token.ID), append(t.Starts, token.Start), append(t.Ends, token.End)
	}
}

func (t familyTokens) equal(other familyTokens) bool {
	return slices.Equal(t.IDs, other.IDs) && slices.Equal(t.Types, other.Types) && slices.Equal(t.Starts, other.Starts) && slices.Equal(t.Ends, other.Ends)
}

// families reads all families in the folder.
func families(t testing.TB) []*family {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*familyFolder, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tokenizers in %s: %v", *familyFolder, err)
	}
	var list []*family
	for _, file := range files {
		list = append(list, readFamily(t, strings.TrimSuffix(filepath.Base(file), ".json.gz")))
	}
	return list
}

func readFamily(t testing.TB, name string) *family {
	t.Helper()
	f := &family{name: name}
	readGzip(t, filepath.Join(*familyFolder, name+".json.gz"), f)
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
	return f
}

// readGzip decodes a fixture: JSON, compressed with gzip.
func readGzip(t testing.TB, path string, into any) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	content, err := io.ReadAll(must.Get(gzip.NewReader(f))(t))
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPublished compares ids, parts of the text and decoded text with the reference library's.
func TestPublished(t *testing.T) {
	traps := map[string]bool{}
	for _, f := range families(t) {
		t.Run(f.name, func(t *testing.T) {
			wrong := 0
			before := f.Texts[0].Text
			for _, c := range f.Texts {
				err := f.compare(c, before)
				before = c.Text
				if c.Trap != "" {
					traps[f.name+c.Trap] = true
					t.Run(c.Trap, func(t *testing.T) {
						if err != nil {
							t.Error(err)
						}
					})
				} else if err != nil {
					if wrong++; wrong < 6 {
						t.Error(err)
					}
				}
			}
			invalid := regexp.MustCompile("\ufffd+") // for an incomplete character, the library writes one U+FFFD
			for _, c := range f.Decoded {
				if text, err := f.Decode(c.IDs); err != nil || invalid.ReplaceAllString(valid(text), "?") != invalid.ReplaceAllString(c.Text, "?") {
					t.Errorf("Decode(%v) = %q, %v; want %q", c.IDs, valid(text), err, c.Text)
				}
			}
			if wrong > 5 {
				t.Errorf("%d of %d texts are wrong", wrong, len(f.Texts))
			}
		})
	}
	if least := 48; len(traps) < least && *familyFolder == "testdata/published" {
		t.Errorf("%d traps, want %d or more", len(traps), least)
	}
}

// compare returns an error if a result for a text differs from the reference library's.
func (f *family) compare(c familyText, before string) error {
	for _, special := range []bool{false, true} {
		tokens, err := f.Tokenize(c.Text, Options{Special: special})
		if err != nil {
			return err
		}
		var got familyTokens
		got.add(tokens)
		want := c.Plain
		if special {
			want = c.Special
		}
		if !got.equal(want) {
			return fmt.Errorf("Tokenize(%q) with Special %t:\n got %v\nwant %v", c.Text, special, got, want)
		}
	}
	for _, pair := range [][]string{nil, {before}} {
		input, err := f.Input(c.Text, pair...)
		if err != nil {
			return err
		}
		got, want := familyTokens{Types: input.Types}, c.Input
		got.add(input.Tokens)
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

// TestCuts gives tokenizers a maximum length, and compares their Inputs with the reference library's. Some Inputs can't
// be cut.
func TestCuts(t *testing.T) {
	testseed.Slow(t)
	var cases []struct {
		Family        string
		Texts         []string
		Truncation    json.RawMessage
		PostProcessor json.RawMessage `json:"post_processor"`
		Input         *familyTokens
	}
	readGzip(t, "testdata/cuts.json.gz", &cases)
	files := map[string]map[string]json.RawMessage{}
	for i, c := range cases {
		if testseed.LeftOut(fmt.Sprint("case ", i)) {
			continue
		}
		if files[c.Family] == nil {
			var file map[string]json.RawMessage
			must.Do(t, json.Unmarshal(readFamily(t, c.Family).Tokenizer, &file))
			files[c.Family] = file
		}
		file := files[c.Family]
		file["truncation"], file["post_processor"] = c.Truncation, c.PostProcessor
		input, err := must.Get(Read(bytes.NewReader(encoded(file))))(t).(*Pipeline).Input(c.Texts[0], c.Texts[1:]...)
		if (err != nil) != (c.Input == nil) {
			t.Errorf("%s, %s: Input(%q) has the error %v, want one: %t", c.Family, c.Truncation, c.Texts, err, c.Input == nil)
		}
		if err != nil || c.Input == nil {
			continue
		}
		got := familyTokens{Types: input.Types}
		got.add(input.Tokens)
		if !got.equal(*c.Input) {
			t.Errorf("%s, %s: Input(%q):\n got %v\nwant %v", c.Family, c.Truncation, c.Texts, got, *c.Input)
		}
	}
	if len(cases) < 100 {
		t.Errorf("%d cases, want 100 or more", len(cases))
	}
}
