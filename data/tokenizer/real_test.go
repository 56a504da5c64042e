package tokenizer

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

var realFolders = flag.String("real", "", "folder of real tokenizers with the reference libraries' results, from testdata/real.py")

// TestReal opens real tokenizers, which aren't part of the repository, and compares ids, parts of the text and decoded
// text with the reference libraries'.
func TestReal(t *testing.T) {
	if *realFolders == "" {
		t.Skip("no real tokenizers: make some with testdata/real.py, and give their folder with -real")
	}
	files, err := filepath.Glob(filepath.Join(*realFolders, "*", "texts.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tokenizers in %s: %v", *realFolders, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			p := must.Get(Open(filepath.Dir(file)))(t)
			var texts []struct {
				Text           string
				Plain, Special *familyTokens
				Decoded        string
			}
			readGzip(t, file, &texts)
			bad := 0
			wrong := func(format string, args ...any) {
				if bad++; bad < 6 {
					t.Errorf(format, args...)
				}
			}
			for _, c := range texts {
				ids := c.Plain.IDs
				for _, want := range []*familyTokens{c.Plain, c.Special} {
					if want == nil {
						continue
					}
					ids = want.IDs
					wholeCharacters(p, want.IDs, want.Ends)
					list, err := p.Tokenize(c.Text, Options{Special: want == c.Special})
					var got familyTokens
					got.add(list)
					if err != nil || !got.equal(*want) {
						wrong("%q, special %v:\n got %v, %v\nwant %v", c.Text, want == c.Special, got, err, *want)
					}
				}
				if text, err := p.Decode(ids); err != nil || strings.ToValidUTF8(text, "\ufffd") != c.Decoded {
					wrong("Decode(%v) = %q, %v; want %q", ids, text, err, c.Decoded)
				}
			}
			t.Logf("%d of %d texts agree", len(texts)-bad, len(texts))
		})
	}
}
