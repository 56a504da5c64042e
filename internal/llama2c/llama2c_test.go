package llama2c

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
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
	for i, name := range []string{"stories260K.bin", "tok512.model"} {
		files[i] = must.Get(os.Open(filepath.Join(source, name)))(t)
		defer files[i].Close()
	}
	dir := t.TempDir()
	must.Do(t, Convert(files[0], files[1], dir))
	m := must.Get(pretrained.Open(dir, tensor.Float32))(t)
	words := must.Get(tokenizer.Open(dir))(t)
	session := must.Get(decode.New(m.Decoder, decode.Config{Capacity: 257}))(t)
	defer session.Close()
	o := decode.Options{MaxTokens: 256, Sampler: m.Sampler, End: m.End}
	results := must.Get(decode.Generate(context.Background(), session, [][]int{{m.Start}}, o))(t)
	got := must.Get(words.Decode(results[0].Tokens))(t)
	if strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
		t.Errorf("greedy output:\n%s\nwant:\n%s", got, want)
	}
}

// TestDamaged checks that models that are cut short, and headers that lie, give errors.
func TestDamaged(t *testing.T) {
	header := func(numbers ...int32) string {
		var b bytes.Buffer
		binary.Write(&b, binary.LittleEndian, numbers)
		return b.String()
	}
	for _, test := range []struct{ model, want string }{
		{"", "the header of seven numbers: EOF"},
		{header(4, 8, 1, 2, 2, 10, 16), "the values of embedding.weight: EOF"},
		{header(4, 8, 1, 2, 2, 1, 16) + strings.Repeat("\x00", 4*4+7), "the values of blocks.0.norm1.weight: unexpected EOF"},
		{header(4, 8, 1, 0, 2, 10, 16), "heads must have an even width"},
		{header(4, 8, 1, 4, 4, 10, 16), "heads must have an even width"},
		{header(4, -8, 1, 2, 2, 10, 16), "Hidden must be at least 1"},
		{header(1<<30, 1<<30, 1<<30, 1, 1, 1<<30, 16), "takes"},
	} {
		must.Fail(t, Convert(strings.NewReader(test.model), strings.NewReader(""), t.TempDir()), test.want)
	}
}
