package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestPairs compares the tokenizers of models that translate and summarise with the reference library: see
// testdata/pairs.py.
func TestPairs(t *testing.T) {
	var fixture struct {
		Texts []string
		Cases []struct {
			Files        map[string]string
			Kind         string
			Languages    []string
			IDs, Targets [][]int
			Decoded      []string
		}
	}
	readGzip(t, "testdata/pairs.json.gz", &fixture)
	for i, c := range fixture.Cases {
		fsys := fixtureFS(t, c.Files)
		source, target := must.Get(OpenFS(fsys))(t), must.Get(OpenTarget(fsys))(t)
		if c.Languages != nil {
			source, target = must.Get(source.WithLanguage(c.Languages[0]))(t), must.Get(target.WithLanguage(c.Languages[1]))(t)
		}
		if _, ok := fsys["target.spm"]; ok {
			delete(fsys, "target.spm")
			if _, err := OpenTarget(fsys); err == nil || !strings.Contains(err.Error(), "must also have a target.spm") {
				t.Errorf("case %d without its target.spm: got the error %v", i, err)
			}
		}
		if fsys["spiece.model"] != nil && strings.HasPrefix(c.Kind, "Pegasus") { // the offset 103 is usual
			usual := must.Get(source.Input("Now"))(t).Tokens[0].ID
			fsys["tokenizer_config.json"].Data = []byte(`{"tokenizer_class": "PegasusTokenizer", "offset": 50}`)
			if got := must.Get(must.Get(OpenFS(fsys))(t).Input("Now"))(t).Tokens[0].ID; got != usual-53 {
				t.Errorf("case %d with the offset 50: got the id %d, want %d", i, got, usual-53)
			}
		}
		wrong := 0
		for j, text := range fixture.Texts {
			got, goal := idsOf(must.Get(source.Input(text))(t).Tokens), idsOf(must.Get(target.Input(text))(t).Tokens)
			special := slices.Collect(maps.Values(target.Special()))
			rest := slices.DeleteFunc(slices.Clone(c.Targets[j]), func(id int) bool { return slices.Contains(special, id) })
			decoded := must.Get(target.Decode(rest))(t)
			if !slices.Equal(got, c.IDs[j]) || !slices.Equal(goal, c.Targets[j]) || decoded != c.Decoded[j] {
				if wrong++; wrong < 4 {
					t.Errorf("case %d, %s, %q: got %v, %v and %q, want %v, %v and %q", i, c.Kind, text, got, goal, decoded, c.IDs[j], c.Targets[j], c.Decoded[j])
				}
			}
		}
		if wrong > 0 {
			t.Errorf("case %d, %s: %d of %d texts differ", i, c.Kind, wrong, len(fixture.Texts))
		}
	}
	if len(fixture.Cases) < 12 || len(fixture.Texts) < 70 {
		t.Errorf("there are only %d cases and %d texts", len(fixture.Cases), len(fixture.Texts))
	}
}
