package task

import (
	"context"
	"errors"
	"go/build"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train"
)

// small are settings of a run that is over at once.
func small(t testing.TB, name string) Config {
	t.Helper()
	c, err := Named(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return smaller(t, c)
}

func smaller(t testing.TB, c Config) Config {
	t.Helper()
	c.Model.Dim, c.Model.Block.Attention.Heads = 16, 2
	c.Training.Batch, c.Training.Steps, c.Training.Epochs, c.Data.Validation = 16, 10, 2, 300
	if c.Task.Kind == data.KindText {
		c.Data.File = filepath.Join(t.TempDir(), "fox.txt")
		c.Task.MaxLen = 16
		fox := strings.Repeat("The quick brown fox jumps over the lazy dog, isn't that so?\n", 50)
		if err := os.WriteFile(c.Data.File, []byte(fox), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func made(t testing.TB, c Config) *Task {
	t.Helper()
	task, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { task.Close() })
	return task
}

// fitted is a task whose model has been trained a little, without a folder.
func fitted(t testing.TB, c Config) *Task {
	t.Helper()
	task := made(t, c)
	if _, err := train.Fit(t.Context(), task.Problem(), task.FitConfig()); err != nil {
		t.Fatal(err)
	}
	return task
}

// trained is a task with its run folder.
func trained(t testing.TB, c Config) (*Task, string) {
	t.Helper()
	task, dir := made(t, c), filepath.Join(t.TempDir(), "run")
	if _, err := task.Train(t.Context(), dir, nil, nil); err != nil {
		t.Fatal(err)
	}
	return task, dir
}

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want one that says %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error is %q, want %q in it", err, w)
		}
	}
}

// ownRule is a rule that Heed doesn't have: it leaves vowels out.
func ownRule() data.Rule {
	return data.Rule{
		Name: "vowels", Kind: data.KindTags, Alphabet: "abcdefghij", MaxLen: 5,
		Sample: func(rng *rand.Rand, maxLen int) string {
			w := make([]byte, 1+rng.IntN(maxLen))
			for i := range w {
				w[i] = 'a' + byte(rng.IntN(10))
			}
			return string(w)
		},
		Answer: func(source string) (string, error) {
			return strings.Map(func(r rune) rune {
				if strings.ContainsRune("aei", r) {
					return -1
				}
				return r
			}, source), nil
		},
	}
}

func configs(t testing.TB) map[string]Config {
	all := map[string]Config{"own rule": smaller(t, Defaults(ownRule()))}
	for _, name := range Names() {
		all[name] = small(t, name)
	}
	for _, name := range []string{"brackets", "text"} { // of another sort
		c := small(t, name)
		c.Model.Positions, c.Model.Block.Norm.Kind, c.Model.Block.FeedForward.Gated = layers.Rotary{}, layers.NormRMS, true
		c.Model.Block.Attention.KeyValueHeads = 1
		all["modern "+name] = c
	}
	return all
}

// Of every task: what is opened answers as what was trained, and evaluates as the summary says.
func TestOpen(t *testing.T) {
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			task := made(t, c)
			dir := filepath.Join(t.TempDir(), "run")
			var log strings.Builder
			s, err := task.Train(t.Context(), dir, &log, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Epochs != 2 || s.Params != task.Params.Count() || s.Score.Total == 0 || s.ValAccuracy != s.Score.Accuracy() || !strings.Contains(log.String(), "Epoch 1: ") {
				t.Errorf("the summary is %+v, the log %q", s, log.String())
			}
			again := made(t, task.Config)
			if err := again.Load(dir); err != nil {
				t.Fatal(err)
			}
			if score, err := again.Evaluate(t.Context()); err != nil || score != s.Score {
				t.Errorf("evaluation gives %+v, %v; want %+v", score, err, s.Score)
			}
			fromFS, err := OpenFS(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			model, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, input := range inputs4(t, task) {
				want, err := task.Predict(input)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range []*Model{model, fromFS} {
					if got, err := m.Predict(input); err != nil || got != want {
						t.Errorf("of %q, what was opened makes %q, %v; what was trained made %q", input, got, err, want)
					}
				}
			}
			_, err = model.Predict("\xff")
			var wrong *InputError
			if !errors.As(err, &wrong) || wrong.Input != "\xff" {
				t.Errorf("an input that isn't text: got %v", err)
			}
		})
	}
}

// inputs4 are some inputs of a task.
func inputs4(t testing.TB, task *Task) []string {
	if task.Config.Task.Kind == data.KindText {
		return []string{"The", "quick brown fox jumps", "z", "\n"}
	}
	var inputs []string
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		inputs = append(inputs, task.Config.Task.Sample(rng, task.Config.Task.MaxLen))
	}
	return inputs
}

// A model answers any number of goroutines at once as it answers one.
func TestConcurrentPredict(t *testing.T) {
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			task, dir := trained(t, c)
			model, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			inputs := inputs4(t, task)
			want := map[string]string{}
			for _, input := range inputs {
				if want[input], err = task.Predict(input); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range 8 {
						input := inputs[(g+i)%len(inputs)]
						if got, err := model.Predict(input); err != nil || got != want[input] {
							t.Errorf("of %q it makes %q, %v; want %q", input, got, err, want[input])
						}
					}
					if _, err := model.Attention(inputs[g%len(inputs)], ""); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// A program that predicts is spared what only drawing and serving need.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("there is no go command: %v", err)
	}
	for _, path := range strings.Fields(string(out)) {
		if path == "net/http" || strings.HasPrefix(path, "gonum.org/v1/plot") || strings.HasPrefix(path, "github.com/spf13") {
			t.Errorf("it depends on %s", path)
		}
	}
	if p, err := build.ImportDir("../../data", 0); err != nil {
		t.Error(err)
	} else {
		for _, path := range p.Imports {
			if strings.Contains(path, ".") {
				t.Errorf("data depends on %s, want the standard library alone", path)
			}
		}
	}
}

func TestDefaultsAreRight(t *testing.T) {
	for _, name := range Names() {
		c, err := Named(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.Task.Kind == data.KindText {
			c.Data.File = "x"
		}
		if err := c.check(); err != nil {
			t.Errorf("the defaults of %s must be right: %v", name, err)
		}
	}
	_, err := Named("nope", 0)
	wantError(t, err, `task must be one of reverse, `, `got "nope"`)
}

func TestNewErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"nothing", func(c *Config) { *c = Config{} }, "format must be 2, got 0"},
		{"no samples", func(c *Config) { c.Task.Sample = nil }, "examples need the rule's Sample and Answer"},
		{"no kind", func(c *Config) { c.Task.Kind = "" }, "the kind must be"},
		{"a file", func(c *Config) { c.Data.File = "x" }, "task text must come with data.file"},
		{"too many to validate on", func(c *Config) { c.Data.Validation = 1 << 20; c.Task.MaxLen = 1 }, "found only"},
		{"another vocabulary", func(c *Config) { c.Model.Vocab = 29 }, "model.vocab must be 28, as the task has it, or 0 for that, got 29"},
		{"other classes", func(c *Config) { c.Model.Outputs = -1 }, "model.outputs must be 27"},
		{"few positions", func(c *Config) { c.Model.Positions = layers.Learned{MaxLen: 10} }, "model.positions.max_len must be from 11"},
		{"absurdly many", func(c *Config) { c.Model.Positions = layers.Learned{MaxLen: 1 << 40} }, "model.positions.max_len must be"},
		{"wide heads", func(c *Config) { c.Model.Block.Attention.HeadDim, c.Model.Block.Attention.Heads = 1<<14, 1<<10 }, "GiB"},
		{"dropout of all", func(c *Config) { c.Model.Block.FeedForward.Dropout = 1 }, "model.block.feed_forward.dropout must be at least 0 and below 1, got 1"},
		{"absurd", func(c *Config) { c.Model.Dim, c.Model.Layers = 1<<14, 128 }, "GiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := small(t, "copy")
			test.change(&c)
			_, err := New(c)
			wantError(t, err, test.want)
			var wrong *ConfigError
			if !errors.As(err, &wrong) {
				t.Errorf("%v must be a *ConfigError, got %T", err, err)
			}
		})
	}
	var wrong *ConfigError
	c := small(t, "copy")
	c.Model.Block.Attention.Heads = 5
	_, err := New(c)
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	if got := wrong.Message(func(s string) string { return "<" + s + ">" }); got != "<model.dim> must be a multiple of <model.block.attention.heads>, got 16 and 5" {
		t.Errorf("the message is %q", got)
	}
}

// A rule whose spelling only its functions know can't be opened without them, nor another rule of its name.
func TestOpenNeedsTheRule(t *testing.T) {
	rule := ownRule()
	rule.Spell = func(source, answer string) (string, string) { return strings.ToLower(source), answer }
	rule.Answer = func(source string) (string, error) { return ownRule().Answer(strings.ToLower(source)) }
	_, dir := trained(t, smaller(t, Defaults(rule)))
	_, err := Open(dir)
	wantError(t, err, filepath.Join(dir, ConfigFile), "the task vowels isn't one of Heed's own", "give the rule to Open")
	other := rule
	other.Alphabet = "abc"
	_, err = Open(dir, other)
	wantError(t, err, "another task vowels than the one known by that name")
	model, err := Open(dir, rule)
	if err != nil {
		t.Fatal(err)
	}
	small, err := model.Predict("bad")
	if err != nil {
		t.Fatal(err)
	}
	if large, err := model.Predict("BAD"); err != nil || large != small {
		t.Errorf("of capital letters it makes %q, %v; of small ones %q", large, err, small)
	}
}

// ownPositions are a scheme that JSON has no name for.
type ownPositions struct{ layers.None }

// A run goes on in its folder, and no other does.
func TestTrainFolders(t *testing.T) {
	task, dir := trained(t, small(t, "copy"))
	_, err := task.Train(t.Context(), dir, nil, nil)
	wantError(t, err, "is finished: there is nothing to resume")
	other := small(t, "copy")
	other.Seed = 2
	_, err = made(t, other).Train(t.Context(), dir, nil, nil)
	wantError(t, err, dir+" holds a run of another configuration")
	if err := os.Remove(filepath.Join(dir, ConfigFile)); err != nil {
		t.Fatal(err)
	}
	_, err = task.Train(t.Context(), dir, nil, nil)
	wantError(t, err, "has a run's model.safetensors, but no config.json")

	own := small(t, "copy")
	own.Model.Positions = ownPositions{}
	unsaved := filepath.Join(t.TempDir(), "own")
	_, err = made(t, own).Train(t.Context(), unsaved, nil, nil)
	wantError(t, err, "the configuration can't be saved")
	if _, err := os.Stat(unsaved); err == nil {
		t.Error("there is a run folder all the same")
	}

	ctx, cancel := context.WithCancel(t.Context())
	c := small(t, "copy")
	half := filepath.Join(t.TempDir(), "half")
	_, err = made(t, c).Train(ctx, half, nil, func(epoch, step int, _ float64) {
		if epoch == 1 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was cancelled", err)
	}
	if _, err := made(t, c).Train(t.Context(), half, nil, nil); err != nil {
		t.Fatal(err)
	}
	got, errGot := os.ReadFile(filepath.Join(half, WeightsFile))
	want, errWant := os.ReadFile(filepath.Join(dir, WeightsFile))
	if errGot != nil || errWant != nil || string(got) != string(want) {
		t.Errorf("the run that was interrupted ends with other weights (%v, %v)", errGot, errWant)
	}
}

func TestGenerate(t *testing.T) {
	task := fitted(t, small(t, "text"))
	var s strings.Builder
	if err := task.Generate(t.Context(), &s, "The quick", decode.Options{MaxTokens: 40}); err != nil || !strings.HasPrefix(s.String(), "The quick") || len(s.String()) != 49 {
		t.Errorf("it writes %q, %v; want the prompt and 40 characters", s.String(), err)
	}
	for _, test := range []struct {
		model        *Model
		prompt, want string
	}{
		{task.Model, "", "the input is empty"}, {task.Model, "é", "symbol 'é'"},
		{made(t, small(t, "copy")).Model, "abc", "learned the task copy, and only text models write on"},
	} {
		s.Reset()
		err := test.model.Generate(t.Context(), &s, test.prompt, decode.Options{MaxTokens: 1})
		wantError(t, err, test.want)
		var wrong *InputError
		if !errors.As(err, &wrong) || s.Len() > 0 {
			t.Errorf("%q: got %v, and %q written", test.prompt, err, s.String())
		}
	}
}

// Whatever is in a config.json, reading it gives settings that pass the checks, or an error.
func FuzzReadConfig(f *testing.F) {
	for _, name := range Names() {
		dir := f.TempDir()
		if err := writeJSON(dir, ConfigFile, small(f, name)); err != nil {
			f.Fatal(err)
		}
		good, err := os.ReadFile(filepath.Join(dir, ConfigFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good)
	}
	f.Add([]byte(`{"format": 2, "task": {"name": "text", "kind": "text", "alphabet": "ab"}, "data": {"file": "x"}, "model": {"dim": 1e3}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ConfigFile), content, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(dir)
		if err != nil {
			return
		}
		if err := c.check(); err != nil {
			t.Errorf("it was read, but: %v", err)
		}
		if _, err := data.NewCoder(c.Task); err != nil {
			t.Errorf("it was read, but: %v", err)
		}
		c.decide(data.Layout{Tokens: 100, Classes: 100, Len: 100}) // must not panic
	})
}
