package tokenizer

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/heed-go/heed/internal/must"
)

// A tokenizer.json with other settings beside it must give the ids and texts of the reference library, transformers, or
// an error that names the setting.
func TestSettings(t *testing.T) {
	var fixture struct {
		Texts []string
		Cases []struct {
			Files    map[string]string
			Kind     string // the reference's class
			IDs, Cut [][]int
			Pair     []int // ids of the first two texts together
			Decoded  []string
		}
	}
	readGzip(t, "testdata/settings.json.gz", &fixture)
	refused := 0
	for i, c := range fixture.Cases {
		p, err := OpenFS(fixtureFS(t, c.Files))
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "isn't supported") {
				t.Errorf("case %d: %v", i, err)
			}
			continue
		}
		pair := must.Get(p.WithLimit(0).Input(fixture.Texts[0], fixture.Texts[1]))(t)
		if !slices.Equal(idsOf(pair.Tokens), c.Pair) {
			t.Errorf("case %d, %s: two texts are %v, want %v\n%s", i, c.Kind, idsOf(pair.Tokens), c.Pair, c.Files["tokenizer_config.json"])
		}
		for j, text := range fixture.Texts {
			whole, err := p.WithLimit(0).Input(text)
			cut, failed := p.Input(text)
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			tokens := must.Get(p.Tokenize(text, Options{Special: true}))(t)
			decoded := must.Get(p.Decode(idsOf(tokens)))(t)
			if special := len(whole.Tokens) - len(idsIn(whole)); decoded != c.Decoded[j] || len(tokens)+special != len(c.IDs[j]) {
				t.Errorf("case %d, %s, %q: got %v, %q, want %v, %q\n%s", i, c.Kind, text, idsOf(tokens), decoded, c.IDs[j], c.Decoded[j], c.Files["tokenizer_config.json"])
			}
			if strings.Contains(text, "<x>") { // its name may be a special token
				continue
			}
			if !slices.Equal(idsOf(whole.Tokens), c.IDs[j]) || !slices.Equal(idsOf(cut.Tokens), c.Cut[j]) {
				t.Errorf("case %d, %s, %q: got %v and %v, want %v and %v\n%s", i, c.Kind, text, idsOf(whole.Tokens), idsOf(cut.Tokens), c.IDs[j], c.Cut[j], c.Files["tokenizer_config.json"])
			}
		}
	}
	if refused > len(fixture.Cases)/10 {
		t.Errorf("%d of %d folders are refused", refused, len(fixture.Cases))
	}
}

// fixtureFS returns the files of a fixture. SentencePiece models are in base64.
func fixtureFS(t *testing.T, files map[string]string) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, content := range files {
		data := []byte(content)
		if strings.HasSuffix(name, ".model") || strings.HasSuffix(name, ".spm") {
			data = must.Get(base64.StdEncoding.DecodeString(content))(t)
		}
		fsys[name] = &fstest.MapFile{Data: data}
	}
	return fsys
}

func idsOf(tokens []Token) []int {
	ids := []int{}
	for _, t := range tokens {
		ids = append(ids, t.ID)
	}
	return ids
}

// idsIn returns the ids of an Input that come from its texts.
func idsIn(in Input) []int {
	ids := []int{}
	for i, t := range in.Tokens {
		if in.Texts[i] >= 0 {
			ids = append(ids, t.ID)
		}
	}
	return ids
}
