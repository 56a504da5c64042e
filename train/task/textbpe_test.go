package task

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train"
)

// manyScripts is a text whose characters have one byte to four.
var manyScripts = strings.Repeat("Le garçon a été là: 世界 says hello 🙂, isn't that so?\n", 60)

// smallBPE are settings of a short run of text in byte pairs.
func smallBPE(t testing.TB, size int) Config {
	t.Helper()
	c := small(t, "text")
	if err := os.WriteFile(c.Data.File, []byte(manyScripts), 0o666); err != nil {
		t.Fatal(err)
	}
	c.Data.SourceUnits, c.Data.VocabSize = tokenizer.BPE, size
	return c
}

// A run of byte pairs is opened without its text, ends with the same bytes where it is interrupted, by any number of
// workers, and is scored by character too.
func TestTextOfBytePairs(t *testing.T) {
	t.Parallel()
	c := smallBPE(t, 280)
	task, dir := trained(t, c)
	if task.layout.Tokens != 280 || task.Config.Task.Alphabet != "" || len(task.Config.Data.Tokenizers) != 1 {
		t.Errorf("got %+v of %+v", task.layout, task.Config.Data)
	}

	half := filepath.Join(t.TempDir(), "half")
	var log strings.Builder
	if _, err := made(t, c).Train(t.Context(), half, train.Call{MaxSteps: 7, Workers: 1, Log: &log}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), ", a vocabulary of 280, seed 1, ") {
		t.Errorf("its log has no size of a vocabulary: %q", log.String())
	}
	saved, err := ReadConfig(half)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.txt")
	if err := os.Rename(c.Data.File, elsewhere); err != nil {
		t.Fatal(err)
	}
	saved.Data.File = elsewhere
	rest := made(t, saved)
	if _, err := rest.Train(t.Context(), half, train.Call{Workers: 3}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{WeightsFile, HistoryFile, TokenizerFile} {
		got, errGot := os.ReadFile(filepath.Join(half, name))
		want, errWant := os.ReadFile(filepath.Join(dir, name))
		if errGot != nil || errWant != nil || !bytes.Equal(got, want) {
			t.Errorf("%s of the interrupted run is another: %v, %v", name, errGot, errWant)
		}
	}

	m, err := Open(dir) // the text isn't there any more
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{"hello", "garçon 世", "\x00 ✓"} { // nothing is unknown
		want, err := task.Predict(input)
		if got, errGot := m.Predict(input); err != nil || errGot != nil || got != want || !utf8.ValidString(got) {
			t.Errorf("of %q it makes %q, %v, want %q, %v", input, got, errGot, want, err)
		}
	}
	if a, err := m.Attention("hello 世", ""); err != nil || len(a.Layers) == 0 {
		t.Errorf("got %v, %v", a, err)
	}

	s, err := rest.Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := rest.set.(*textSet)
	counted := 0
	for n := range set.windows {
		b, err := set.ValidationBatch([]int{n}, set.length, set.most)
		if err != nil {
			t.Fatal(err)
		}
		text, err := set.Tokenizer().Decode(b.Targets)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(text) {
			if b < 0x80 || b >= 0xc0 { // where a character begins
				counted++
			}
		}
	}
	if want := s.Loss * float64(s.Total) / float64(counted); s.Characters != counted || s.Characters < s.Total/2 || math.Abs(s.PerCharacter()-want) > 1e-12 {
		t.Errorf("%d characters, want %d, in %d tokens; %v a character", s.Characters, counted, s.Total, s.PerCharacter())
	}
	summary, err := os.ReadFile(filepath.Join(half, SummaryFile))
	if err != nil || !strings.Contains(string(summary), `"val_loss_per_character":`) {
		t.Errorf("the summary is %s, %v", summary, err)
	}

	next := smallBPE(t, 0)
	next.Data.SourceUnits = ""
	if err := next.StartFrom(dir); err != nil {
		t.Fatal(err)
	}
	if next := made(t, next); len(next.Loaded.Kept)+len(next.Loaded.Unused) > 0 || next.Config.Task.Source.Len() != 280 {
		t.Errorf("started from it, got %+v", next.Loaded)
	}
}

// What is learned of a text without a size has one by how much there is, and characters may be asked for by name.
func TestTextUnits(t *testing.T) {
	if task := made(t, smallBPE(t, 0)); task.Config.Data.VocabSize != 512 {
		t.Errorf("the size is %d", task.Config.Data.VocabSize)
	}
	c := small(t, "text")
	want := made(t, c).Config.id()
	c.Data.SourceUnits = tokenizer.Characters
	task := made(t, c)
	if got := task.Config.id(); got != want {
		t.Error("characters by name are another run than characters by default")
	}
	if s, err := task.Evaluate(t.Context()); err != nil || s.Characters != 0 || s.PerCharacter() != s.Loss {
		t.Errorf("of characters: %+v, %v", s, err)
	}
	for _, test := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Data.SourceUnits = tokenizer.Tokens }, `data.source_units must be one of characters, bpe for the task text, got "tokens"`},
		{func(c *Config) { c.Data.TargetUnits = tokenizer.BPE }, "task text has no rows"},
		{func(c *Config) { c.Data.VocabSize = 300 }, "data.vocab_size is for data.units bpe"},
	} {
		c := small(t, "text")
		test.change(&c)
		_, err := New(c)
		wantError(t, err, test.want)
	}
}

// The text may not change, nor may a folder's tokenizer, nor be missing.
func TestTextOfBytePairsThatChanges(t *testing.T) {
	t.Parallel()
	c := smallBPE(t, 260)
	c.Training.MaxEpochs = 1
	_, dir := trained(t, c)
	if err := os.WriteFile(c.Data.File, []byte(manyScripts+"more\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	saved, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(saved)
	wantError(t, err, "the text has changed since the run began")

	path := filepath.Join(dir, ConfigFile)
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(config, []byte(`"source_units": "bpe",`), nil, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, err, "config.json")
	if err := os.WriteFile(path, config, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, TokenizerFile), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, err, "its tokenizer.json", "restore it")
}

// pieces is a writer that keeps each piece by itself.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

// Characters that are several tokens are written once they are whole. The last one may never be.
func TestGenerateBytePairs(t *testing.T) {
	t.Parallel()
	c := smallBPE(t, 256)
	if err := os.WriteFile(c.Data.File, []byte(strings.Repeat("世", 3000)), 0o666); err != nil {
		t.Fatal(err)
	}
	c.Training.StepsPerEpoch, c.Training.Optimizer.LearningRate, c.Training.Optimizer.Schedule.WarmUp = 40, 0.02, 5
	task := fitted(t, c)
	for tokens, want := range map[int]string{6: "世世世", 7: "世世世�", 8: "世世世��"} {
		var got pieces
		if err := task.Generate(t.Context(), &got, "世", decode.Options{MaxTokens: tokens}); err != nil || strings.Join(got, "") != want {
			t.Errorf("it writes %q, %v; want %q", got, err, want)
		}
		for _, piece := range got {
			if !utf8.ValidString(piece) {
				t.Errorf("it writes %q, a part of a character", piece)
			}
		}
	}
	err := task.Generate(t.Context(), &pieces{}, "\xe4", decode.Options{MaxTokens: 1})
	var invalid *tokenizer.InvalidUTF8Error
	if !errors.As(err, &invalid) {
		t.Errorf("a prompt that isn't UTF-8: %v", err)
	}
}

// Tokens of one's own that are split at spaces are written with spaces between them, and after the prompt.
func TestGenerateTokens(t *testing.T) {
	c := smallBPE(t, 0)
	var err error
	if c.Task.Source, err = tokenizer.New(tokenizer.Tokens, slices.Values([]string{manyScripts}), 0); err != nil {
		t.Fatal(err)
	}
	var got pieces
	if err := made(t, c).Generate(t.Context(), &got, "Le garçon", decode.Options{MaxTokens: 3}); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got, ""); !strings.HasPrefix(text, "Le garçon ") || len(strings.Fields(text)) != 5 || len(got) != 4 {
		t.Errorf("it writes %q, want the prompt and 3 tokens", got)
	}
}
