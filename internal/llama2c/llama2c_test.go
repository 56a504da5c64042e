package llama2c

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/layers/pretrained"
)

// TestStories260K converts a published model with real weights. Its greedy output from an empty prompt must equal the
// published output. The test skips where the files aren't there.
func TestStories260K(t *testing.T) {
	source := "../../../shared/data/stories260K"
	want, err := os.ReadFile(filepath.Join(source, "greedy.txt"))
	if err != nil {
		t.Skip(err)
	}
	var files [2]*os.File
	for i, name := range []string{"stories260K.bin", "tok512.bin"} {
		if files[i], err = os.Open(filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	dir := t.TempDir()
	if err := Convert(files[0], files[1], dir); err != nil {
		t.Fatal(err)
	}
	m, err := pretrained.Open(dir, tensor.Float32)
	if err != nil {
		t.Fatal(err)
	}
	words, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	session, err := decode.New(m.Decoder, decode.Config{Capacity: 257})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	o := decode.Options{MaxTokens: 256, Sampler: m.Sampler, End: m.End}
	results, err := decode.Generate(context.Background(), session, [][]int{{m.Start}}, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := words.Decode(results[0].Tokens)
	if err != nil {
		t.Fatal(err)
	}
	if string(bytes.TrimSpace([]byte(got))) != string(bytes.TrimSpace(want)) {
		t.Errorf("greedy output:\n%s\nwant:\n%s", got, want)
	}
}
