package task

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

// searchFolder returns a published folder with prompts, whose vectors are compared as similarity says.
func searchFolder(t *testing.T, similarity string) string {
	dir := publishedFolder(t, "llama-states")
	write(t, filepath.Join(dir, "modules.json"), `[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}]`)
	write(t, filepath.Join(dir, "config_sentence_transformers.json"), fmt.Sprintf(`{"prompts": {"query": "q. ", "passage": "p. ", "other": "o. "}, "default_prompt_name": "other", "similarity_fn_name": %q}`, similarity))
	return dir
}

// Queries and rows get their prompts, and the scores are cosines or dot products of their vectors.
func TestSearch(t *testing.T) {
	for _, similarity := range []string{"cosine", "dot"} {
		m := must.Get(Open(searchFolder(t, similarity)))(t)
		texts := []string{"a lazy dog", "quick foxes", "dogs and foxes", "brown bread"}
		file := filepath.Join(t.TempDir(), "rows.csv")
		write(t, file, "id,body\n1,"+texts[0]+"\n2,"+texts[1]+"\n3,\n4,"+texts[2]+"\n5,"+texts[3]+"\n")
		m.Config.Data.Columns = []string{"body"}
		var notes []string
		m.Note = func(note string) { notes = append(notes, note) }
		s := must.Get(OpenSearch(t.Context(), m, file))(t)
		if len(notes) != 1 || !strings.Contains(notes[0], "left out 1 bad row, the last: line 4") {
			t.Errorf("the notes are %q", notes)
		}
		if err := m.SetPrompt(""); err != nil {
			t.Fatal(err)
		}
		query, _, err := m.Embed(t.Context(), []string{"q. bread"})
		must.Do(t, err)
		var prompted []string
		for _, text := range texts {
			prompted = append(prompted, "p. "+text)
		}
		rows, _, err := m.Embed(t.Context(), prompted)
		must.Do(t, err)
		want := map[string]float64{}
		for i, row := range rows {
			dot, a, b := 0.0, 0.0, 0.0
			for j, x := range row {
				dot += float64(x * query[0][j])
				a, b = a+float64(x*x), b+float64(query[0][j]*query[0][j])
			}
			if want[texts[i]] = dot; similarity == "cosine" {
				want[texts[i]] /= math.Sqrt(a * b)
			}
		}
		found := must.Get(s.Nearest(t.Context(), 9, "bread", "dog"))(t)
		if len(found) != 2 || len(found[0]) != 4 || len(found[1]) != 4 {
			t.Fatalf("found %v, want 4 rows for each of 2 queries", found)
		}
		for i, m := range found[0] {
			if math.Abs(float64(m.Score)-want[m.Text]) > 1e-5 || i > 0 && m.Score > found[0][i-1].Score {
				t.Errorf("%s: match %d is %+v, want the score %g", similarity, i, m, want[m.Text])
			}
			if fields := []string{"id", "body"}; !slices.Equal(s.Names, fields) || m.Fields[1] != m.Text || m.Fields[0] != fmt.Sprint(m.Line-1) {
				t.Errorf("match %d is %+v, and the fields are %q", i, m, s.Names)
			}
		}
		again := must.Get(must.Get(OpenSearch(t.Context(), m, file))(t).Nearest(t.Context(), 9, "bread", "dog"))(t)
		if fmt.Sprint(again) != fmt.Sprint(found) {
			t.Errorf("kept vectors find %v, want %v", again, found)
		}
	}
	must.Refuse(OpenSearch(t.Context(), must.Get(Open(searchFolder(t, "manhattan")))(t), "rows.csv"))(t, `similarity_fn_name "manhattan"`)
	must.Refuse(OpenSearch(t.Context(), must.Get(Open(publishedFolder(t, "llama")))(t), "rows.csv"))(t, "only models of kind embed or mlm embed texts")
}

// Kept vectors are used only if the texts and the model are the same, and if the file is whole.
func TestSearchKept(t *testing.T) {
	dir, folder := searchFolder(t, "cosine"), t.TempDir()
	file := filepath.Join(folder, "rows.jsonl")
	kept := VectorsFile(file)
	rows := `{"text": "a fox", "n": 1}` + "\n" + `{"text": "a dog", "n": 2}` + "\n"
	write(t, file, rows)
	open := func(wants ...string) string { // returns what the search finds, and checks the notes
		t.Helper()
		var notes []string
		m := must.Get(Open(dir))(t)
		m.Note = func(note string) { notes = append(notes, note) }
		embedded := false
		m.Progress = func(int, int) { embedded = true }
		s := must.Get(OpenSearch(t.Context(), m, file))(t)
		all := strings.Join(notes, "\n")
		if len(notes) != len(wants) || embedded != (len(wants) > 0) {
			t.Errorf("the notes are %q, and texts were embedded: %v; want %q", notes, embedded, wants)
		}
		for _, want := range wants {
			must.Have(t, all, want)
		}
		return fmt.Sprint(must.Get(s.Nearest(t.Context(), 1, "dog"))(t))
	}
	m := must.Get(Open(dir))(t)
	first := fmt.Sprint(must.Get(must.Get(OpenSearch(t.Context(), m, file))(t).Nearest(t.Context(), 1, "dog"))(t))
	whole := read(t, kept)
	if open() != first {
		t.Error("kept vectors find other rows")
	}
	if size := 10 + int(binary.LittleEndian.Uint16([]byte(whole[8:]))); len(whole) != size+2*16*4 || size%64 != 0 {
		t.Errorf("the kept file has %d bytes, %d of them before the vectors", len(whole), size)
	}
	damaged := func(i int) string {
		b := []byte(whole)
		b[i] ^= 4
		return string(b)
	}
	for content, want := range map[string]string{
		whole[:len(whole)-1]:                            "it is damaged: it has",
		whole + "x":                                     "it is damaged: it has",
		damaged(len(whole) - 3):                         "its numbers don't fit its checksum",
		damaged(strings.Index(whole, "heed ") + 9):      "it has vectors of other texts or of another model",
		damaged(strings.Index(whole, "heed ") + 79):     "its numbers don't fit its checksum",
		strings.Replace(whole, "(2, 16)", "(2, 17)", 1): "it is damaged: it has",
		strings.Replace(whole, "(2, 16)", "(9, 16)", 1): "it is damaged: it has",
		whole[:len(whole)-4] + "\x00\x00\xc0\x7f":       "it is damaged: vector 1 has the length NaN",
	} {
		write(t, kept, content)
		if open(want) != first || read(t, kept) != whole {
			t.Errorf("%q: the search finds other rows, or doesn't keep the vectors again", want)
		}
	}
	for _, foreign := range []string{"", "mine", "\x93NUMPY\x01\x00", strings.Replace(whole, "# heed", "# mine", 1)} {
		write(t, kept, foreign)
		if open("isn't one of Heed's") != first || read(t, kept) != foreign {
			t.Errorf("%.20q: a foreign file is overwritten, or the search finds other rows", foreign)
		}
	}
	must.Do(t, os.Remove(kept))
	must.Do(t, os.Mkdir(kept, 0o777))
	open("isn't one of Heed's")
	must.Do(t, os.Remove(kept))
	write(t, kept, whole)
	write(t, file, strings.Replace(rows, `"n": 1`, `"n": 3`, 1)) // not in the column of texts
	open()
	write(t, file, strings.Replace(rows, "fox", "f0x", 1))
	open("of other texts or of another model")
	weights := filepath.Join(dir, "model.safetensors")
	content := []byte(read(t, weights))
	content[len(content)-2] ^= 1
	must.Do(t, os.WriteFile(weights, content, 0o666))
	open("of other texts or of another model")
	write(t, filepath.Join(dir, "config_sentence_transformers.json"), `{"prompts": {"passage": "passage: "}}`)
	open("of other texts or of another model")
	if bytes.Equal([]byte(read(t, kept)), []byte(whole)) {
		t.Error("the vectors of another model aren't kept")
	}
	file = filepath.Join(folder, strings.Repeat("x", 245)+".jsonl") // the name of its vectors would be too long
	write(t, file, rows)
	open("the vectors aren't kept")
	write(t, file, "{\"text\": \" \"}\n")
	must.Refuse(OpenSearch(t.Context(), m, file))(t, "has no row with a text")
	if _, err := (&model.Model{}).Sum(); err == nil {
		t.Error("a model without a folder has a checksum")
	}
}
