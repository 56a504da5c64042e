package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var published = flag.String("published", "testdata/published", "folder of published families' tokenizers with the reference library's results, from testdata/published.py")

// TestPublished compares ids, parts of the text and decoded text with the reference library's.
func TestPublished(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*published, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tokenizers in %s: %v", *published, err)
	}
	type tokens struct{ IDs, Types, Starts, Ends []int }
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			var set struct {
				Tokenizer json.RawMessage
				Texts     []struct {
					Text                        string
					Plain, Special, Input, Pair tokens
					Decoded, Skipped            string
				}
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			in, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(content, &set); err != nil {
				t.Fatal(err)
			}
			tok, err := Read(bytes.NewReader(set.Tokenizer))
			if err != nil {
				t.Fatal(err)
			}
			bad := 0
			wrong := func(format string, args ...any) {
				if bad++; bad < 6 {
					t.Errorf(format, args...)
				}
			}
			input := func(texts ...string) (now tokens) {
				in, err := tok.(*Pipeline).Input(texts[0], texts[1:]...)
				if err != nil {
					t.Fatal(err)
				}
				for i, token := range in.Tokens {
					now.IDs, now.Starts, now.Ends, now.Types = append(now.IDs, token.ID), append(now.Starts, token.Start), append(now.Ends, token.End), append(now.Types, in.Types[i])
				}
				return now
			}
			before := set.Texts[0].Text
			for _, c := range set.Texts {
				if now := input(c.Text); !slices.Equal(now.IDs, c.Input.IDs) || !slices.Equal(now.Types, c.Input.Types) || !slices.Equal(now.Starts, c.Input.Starts) || !slices.Equal(now.Ends, c.Input.Ends) {
					wrong("Input(%q):\n got %v\nwant %v", c.Text, now, c.Input)
				}
				if now := input(c.Text, before); !slices.Equal(now.IDs, c.Pair.IDs) || !slices.Equal(now.Types, c.Pair.Types) {
					wrong("Input(%q, %q):\n got %v\nwant %v", c.Text, before, now, c.Pair)
				}
				before = c.Text
				for i, want := range []tokens{c.Plain, c.Special} {
					got, err := tok.Tokenize(c.Text, Options{Special: i == 1})
					if err != nil {
						t.Fatal(err)
					}
					var now tokens
					for _, g := range got {
						now.IDs, now.Starts, now.Ends = append(now.IDs, g.ID), append(now.Starts, g.Start), append(now.Ends, g.End)
					}
					if !slices.Equal(now.IDs, want.IDs) || !slices.Equal(now.Starts, want.Starts) || !slices.Equal(now.Ends, want.Ends) {
						wrong("%q, special %v:\n got %v\nwant %v", c.Text, i == 1, now, want)
					}
				}
				if text, err := tok.Decode(c.Special.IDs); err != nil || strings.ToValidUTF8(text, "\ufffd") != c.Decoded {
					wrong("Decode(%v) = %q, %v; want %q", c.Special.IDs, text, err, c.Decoded)
				}
			}
			if bad > 0 {
				t.Errorf("%d of %d wrong", bad, 5*len(set.Texts))
			}
		})
	}
}
