package task

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// manyScripts is a text with characters of one to four bytes.
var manyScripts = strings.Repeat("Le garçon a été là: 世界 says hello 🙂, isn't that so?\n", 60)

// smallBPE returns settings for a short run on a text in byte pairs.
func smallBPE(t testing.TB, size int) Config {
	t.Helper()
	c := small(t, "text")
	write(t, c.Data.File, manyScripts)
	c.Data.SourceUnits, c.Data.VocabSize = tokenizer.BPE, size
	return c
}

// A run with byte pairs must open without its text. It must have the same bytes after an interruption and with any
// number of workers. Its score must count characters too.
func TestTextOfBytePairs(t *testing.T) {
	t.Parallel()
	c := smallBPE(t, 280)
	task, dir := trained(t, c)
	if task.Coder.Layout().Tokens != 280 || task.Config.Task.Alphabet != "" || len(task.Config.Data.Tokenizers) != 1 {
		t.Errorf("got the layout %+v and the data %+v, want 280 tokens and one tokenizer", task.Coder.Layout(), task.Config.Data)
	}

	half := filepath.Join(t.TempDir(), "half")
	var log strings.Builder
	run(t, made(t, c), half, train.RunOptions{MaxSteps: 7, Workers: 1, Log: &log})
	must.Have(t, log.String(), fmt.Sprintf(", a text of %d characters, a vocabulary of 280, seed 1, ", task.Config.Data.Characters))
	saved := must.Get(ReadConfig(half))(t)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.txt")
	must.Do(t, os.Rename(c.Data.File, elsewhere))
	saved.Data.File = elsewhere
	rest := made(t, saved)
	run(t, rest, half, train.RunOptions{Workers: 3})
	wantFiles(t, half, dir, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.TokenizerFile)

	m := must.Get(Open(dir))(t)                               // the text was moved
	wantSame(t, m, task.Model, "hello", "garçon 世", "\x00 ✓") // byte pairs know all symbols
	if a, err := m.Attention("hello 世", ""); err != nil || len(a.Layers) == 0 {
		t.Errorf("Attention: got %v, %v, want layers", a, err)
	}

	s := evaluated(t, rest)
	set := rest.set.(*textSet)
	counted := 0
	for n := range set.windows {
		b := must.Get(set.ValidationBatch([]int{n}, set.length, set.limit))(t)
		text := must.Get(set.Tokenizer().Decode(b.Targets))(t)
		for _, b := range []byte(text) {
			if b < 0x80 || b >= 0xc0 { // first byte of a character
				counted++
			}
		}
	}
	got := judge.ScoresOf(rest.Model, &s, nil).LossPerCharacter
	if want := s.Loss * float64(s.Total) / float64(counted); s.Characters != counted || s.Characters < s.Total/2 || math.Abs(*got-want) > 1e-12 {
		t.Errorf("got %d characters, want %d, in %d tokens; the loss per character is %v, want %v", s.Characters, counted, s.Total, *got, want)
	}
	must.Have(t, read(t, filepath.Join(half, runfolder.SummaryFile)), `"val_loss_per_character":`)

	next := smallBPE(t, 0)
	next.Data.SourceUnits = ""
	must.Do(t, next.StartFrom(dir))
	if next := made(t, next); len(next.Loaded.Kept)+len(next.Loaded.Unused) > 0 || next.Config.Task.Source.Len() != 280 {
		t.Errorf("started from this run: got %+v, want all weights to fit", next.Loaded)
	}
}

// Without a VocabSize, New must choose one from the size of the text. Characters by name must be the same as the
// default.
func TestTextUnits(t *testing.T) {
	if task := made(t, smallBPE(t, 0)); task.Config.Data.VocabSize != 512 {
		t.Errorf("the VocabSize is %d, want 512", task.Config.Data.VocabSize)
	}
	c := small(t, "text")
	want := made(t, c).Config.id()
	c.Data.SourceUnits = tokenizer.Characters
	task := made(t, c)
	if got := task.Config.id(); got != want {
		t.Error("the run with characters by name has another id than the run with the default")
	}
	if s, err := task.Evaluate(t.Context()); err != nil || s.Characters != 0 {
		t.Errorf("score with characters: got %+v, %v, want no Characters", s, err)
	}
	for _, test := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Data.SourceUnits = tokenizer.Tokens }, `data.source_units must be one of characters, bpe for the task text, got "tokens"`},
		{func(c *Config) { c.Data.TargetUnits = tokenizer.BPE }, "data.target_units is for one file of rows or two parallel files, and task text learns a text"},
		{func(c *Config) { c.Data.VocabSize = 300 }, "data.vocab_size is only for data.units bpe"},
	} {
		c := small(t, "text")
		test.change(&c)
		must.Refuse(New(c))(t, test.want)
	}
}

// A text may have several files and folders. The run finds them again, and notices a changed, added or missing file.
func TestTextOfFiles(t *testing.T) {
	dir := t.TempDir()
	folder, lines := filepath.Join(dir, "folder"), filepath.Join(dir, "lines.jsonl")
	must.Do(t, os.Mkdir(folder, 0o777))
	fox := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 40)
	write(t, filepath.Join(folder, "a.txt"), fox)
	write(t, filepath.Join(folder, "b.txt"), fox)
	write(t, lines, `{"body": "`+strings.ReplaceAll(fox, "\n", " ")+`"}`+"\n")
	for _, units := range []tokenizer.Units{"", tokenizer.BPE} {
		c := small(t, "text")
		c.Data.File, c.Data.MoreFiles, c.Data.Columns, c.Data.SourceUnits = folder, []string{lines}, []string{"body"}, units
		task := made(t, c)
		text := fox + fox + strings.ReplaceAll(fox, "\n", " ") + "\n"
		if got := task.Config.Data.SHA256; got != runfolder.Sum([]byte(text)) {
			t.Errorf("units %q: got checksum %s, want %s, of the whole text", units, got, runfolder.Sum([]byte(text)))
		}
		run(t, task, filepath.Join(dir, "run"+string(units)), train.RunOptions{MaxSteps: 3})
		saved := must.Get(ReadConfig(filepath.Join(dir, "run"+string(units))))(t)
		again := made(t, saved)
		if s := run(t, again, filepath.Join(dir, "run"+string(units)), train.RunOptions{}); s.Unfinished {
			t.Errorf("units %q: after resuming, the run is unfinished", units)
		}
		one := saved // the same text in one file
		one.Data.File, one.Data.MoreFiles, one.Data.Columns = filepath.Join(dir, "one.txt"), nil, nil
		write(t, one.Data.File, text)
		made(t, one)

		added := filepath.Join(folder, "c.txt")
		write(t, added, "The dog.")
		must.Refuse(New(saved))(t, "has changed since the run began")
		must.Do(t, os.Remove(added))
		first := filepath.Join(folder, "a.txt")
		write(t, first, strings.Replace(fox, "quick", "quack", 1))
		must.Refuse(New(saved))(t, "has changed since the run began")
		must.Do(t, os.Remove(first))
		must.Refuse(New(saved))(t, "has changed since the run began")
		write(t, first, fox)
		made(t, saved)
	}
	c := small(t, "classification")
	c.Data.MoreFiles = []string{lines}
	must.Refuse(New(c))(t, "data.more_files is for a text, and task classification learns one file of rows")
}

// If the text, the tokenizer or the units were changed, New or Open must return an error.
func TestTextOfBytePairsThatChanges(t *testing.T) {
	t.Parallel()
	c := smallBPE(t, 260)
	c.Training.MaxEpochs = 1
	_, dir := trained(t, c)
	write(t, c.Data.File, manyScripts+"more\n")
	saved := must.Get(ReadConfig(dir))(t)
	must.Refuse(New(saved))(t, "has changed since the run began")

	path := filepath.Join(dir, runfolder.ConfigFile)
	config := read(t, path)
	write(t, path, strings.Replace(config, `"source_units": "bpe",`, "", 1))
	must.Refuse(Open(dir))(t, "config.json")
	write(t, path, config)
	write(t, filepath.Join(dir, runfolder.TokenizerFile), "{}")
	must.Refuse(Open(dir))(t, "its tokenizer.json", "restore it")
}

// pieces is a writer that keeps the text of each call of Write.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

// A character of several tokens must be written when it is complete. If the last character stays incomplete, U+FFFD
// must be written.
func TestGenerateBytePairs(t *testing.T) {
	t.Parallel()
	c := smallBPE(t, 256)
	write(t, c.Data.File, strings.Repeat("世", 3000))
	c.Training.StepsPerEpoch, c.Training.Optimizer.LearningRate, c.Training.Optimizer.Schedule.WarmUp = 40, 0.02, 5
	task := fitted(t, c)
	for tokens, want := range map[int]string{6: "世世世", 7: "世世世�", 8: "世世世�"} {
		var got pieces
		if _, err := task.Generate(t.Context(), &got, Prompt{Text: "世"}, GenerateOptions{MaxTokens: tokens, Echo: true}); err != nil || strings.Join(got, "") != want {
			t.Errorf("Generate writes %q, %v, want %q", got, err, want)
		}
		for _, piece := range got {
			if !utf8.ValidString(piece) {
				t.Errorf("Generate writes %q, which isn't valid UTF-8", piece)
			}
		}
	}
	_, err := task.Generate(t.Context(), &pieces{}, Prompt{Text: "\xe4"}, GenerateOptions{MaxTokens: 1})
	var invalid *tokenizer.InvalidUTF8Error
	if !errors.As(err, &invalid) {
		t.Errorf("a prompt that isn't UTF-8: got error %v", err)
	}
}

// Generate must write a space before each token if the user's tokenizer splits the text at spaces.
func TestGenerateTokens(t *testing.T) {
	c := smallBPE(t, 0)
	c.Task.Source = must.Get(tokenizer.New(tokenizer.Tokens, slices.Values([]string{manyScripts}), 0))(t)
	var got pieces
	must.Get(made(t, c).Generate(t.Context(), &got, Prompt{Text: "Le garçon"}, GenerateOptions{MaxTokens: 3, Echo: true}))(t)
	if text := strings.Join(got, ""); !strings.HasPrefix(text, "Le garçon ") || len(strings.Fields(text)) != 5 || len(got) != 4 {
		t.Errorf("Generate writes %q, want the prompt and 3 tokens", got)
	}
}

// TestForeignTokenizer checks that New refuses a tokenizer that Open would refuse in the run folder.
func TestForeignTokenizer(t *testing.T) {
	c := smallBPE(t, 0)
	file := `{"version": "1.0", "model": {"type": "BPE", "unk_token": "a", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}`
	c.Task.Source = must.Get(tokenizer.Read(strings.NewReader(file)))(t)
	must.Refuse(New(c))(t, "a run folder can't have this tokenizer, a *tokenizer.Pipeline: it isn't a tokenizer.json for characters, tokens, words or bpe that heed has written: line 1 ")
}
