package task

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// For every task, the opened model must give the trained model's answers, and the loaded weights must give the
// summary's score.
func TestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			task := made(t, c)
			dir := filepath.Join(t.TempDir(), "run")
			var log strings.Builder
			s, err := task.Train(t.Context(), dir, train.RunOptions{Log: &log})
			if err != nil {
				t.Fatal(err)
			}
			if s.Epochs != 2 || s.Params != task.Params.Count() || s.Score.Total == 0 || *s.ValScore != s.Score.Value || !strings.Contains(log.String(), "Epoch 1: ") {
				t.Errorf("got the summary %+v and the log %q, want 2 epochs with a score", s, log.String())
			}
			again := made(t, task.Config)
			if err := again.Load(dir); err != nil {
				t.Fatal(err)
			}
			if score, err := again.Evaluate(t.Context()); err != nil || score != s.Score {
				t.Errorf("Evaluate returns %+v, %v, want %+v", score, err, s.Score)
			}
			fromFS, err := OpenFS(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			model, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, input := range inputsOf(t, task) {
				want, err := task.Predict(input)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range []*Model{model, fromFS} {
					if got, err := m.Predict(input); err != nil || got != want {
						t.Errorf("%q: the opened model answers %q, %v, want %q", input, got, err, want)
					}
				}
			}
			_, err = model.Predict("\xff")
			var wrong *InputError
			if !errors.As(err, &wrong) || wrong.Input != "\xff" {
				t.Errorf("an input that isn't UTF-8: got error %v", err)
			}
		})
	}
}

// inputsOf returns some inputs for a task.
func inputsOf(t testing.TB, task *Task) []string {
	if task.Config.Task.Kind == data.KindText {
		return []string{"The", "quick brown fox jumps", "z", "\n"}
	}
	if rows, ok := task.set.(*rowSet); ok {
		return slices.AppendSeq([]string{"zebra"}, rows.Validation.Sources())[:4]
	}
	var inputs []string
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		inputs = append(inputs, task.Config.Task.Sample(rng, task.Config.Task.MaxLen))
	}
	return inputs
}

// If several goroutines call Predict at once, the answers must be the same as those to one goroutine.
func TestConcurrentPredict(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for name, c := range configs(t) {
		t.Run(name, func(t *testing.T) {
			task, dir := trained(t, c)
			model, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			inputs := inputsOf(t, task)
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
							t.Errorf("%q: got %q, %v, want %q", input, got, err, want[input])
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

// This package must not depend on packages for drawing or serving, because programs that only predict don't need them.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("there is no go command: %v", err)
	}
	for _, path := range strings.Fields(string(out)) {
		if path == "net/http" || strings.HasPrefix(path, "gonum.org/v1/plot") || strings.HasPrefix(path, "github.com/spf13") {
			t.Errorf("the package depends on %s", path)
		}
	}
	if p, err := build.ImportDir("../../data", 0); err != nil {
		t.Error(err)
	} else {
		for _, path := range p.Imports {
			below := strings.HasPrefix(path, "github.com/heed-go/heed/internal/") || strings.HasPrefix(path, "github.com/heed-go/heed/data/")
			if strings.Contains(path, ".") && !below {
				t.Errorf("data depends on %s, want only the standard library, internal packages and packages below data", path)
			}
		}
	}
}

// The weights of a finished run must match its summary. Weights of an earlier check, weights without a checksum and the
// summary of another seed must be errors. Without a summary, any weights of the run open.
func TestOpenComparesWeights(t *testing.T) {
	t.Parallel()
	c := small(t, "copy")
	c.Training.Stopping.KeepLast = true
	task, dir := made(t, c), filepath.Join(t.TempDir(), "run")
	run(t, task, dir, train.RunOptions{MaxSteps: c.Training.StepsPerEpoch})
	read := func(dir, name string) string { return read(t, filepath.Join(dir, name)) }
	write := func(name, content string) { write(t, filepath.Join(dir, name), content) }
	earlier := read(dir, WeightsFile)
	run(t, made(t, c), dir, train.RunOptions{})
	good, summary := read(dir, WeightsFile), read(dir, SummaryFile)
	var plain bytes.Buffer // the same tensors without a checksum
	tensors, metadata, err := safetensors.ReadFile(filepath.Join(dir, WeightsFile))
	if err == nil {
		err = safetensors.Write(&plain, tensors, metadata)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Seed++
	_, other := trained(t, c)
	c.Seed--

	from := small(t, "copy")
	if err := from.StartFrom(dir); err != nil {
		t.Fatal(err)
	}
	loaded, opened := made(t, c), made(t, c)
	want := fmt.Sprint(loaded.Params.Snapshot())
	for name, file := range map[string]struct {
		name, content string
	}{
		"an earlier check's":     {WeightsFile, earlier},
		"without a checksum":     {WeightsFile, strings.Replace(plain.String(), "heed.sha256", "hood.sha256", 1)},
		"another seed's summary": {SummaryFile, read(other, SummaryFile)},
	} {
		t.Run(name, func(t *testing.T) {
			write(file.name, file.content)
			words := []string{SummaryFile + " and " + WeightsFile, dir, "don't belong together"}
			_, err := Open(dir)
			wantError(t, err, words...)
			_, err = OpenFS(os.DirFS(dir))
			wantError(t, err, "don't belong together")
			wantError(t, loaded.Load(dir), words...)
			if fmt.Sprint(loaded.Params.Snapshot()) != want {
				t.Error("Load returned an error, but changed the parameters")
			}
			_, err = New(from)
			wantError(t, err, words...)
			write(WeightsFile, good)
			write(SummaryFile, summary)
			if err := cmp.Or(opened.Load(dir), made(t, from).Close()); err != nil {
				t.Error(err)
			}
		})
	}
	c.Training.MaxEpochs++ // runs with the same id may have different MaxEpochs
	_, longer := trained(t, c)
	write(WeightsFile, read(longer, WeightsFile))
	write(SummaryFile, read(longer, SummaryFile))
	_, err = Open(dir)
	wantError(t, err, SummaryFile+" and "+ConfigFile, dir, "don't belong together")

	write(SummaryFile, "{")
	_, err = Open(dir)
	wantError(t, err, SummaryFile+" can't be read, or was changed")
	if err := os.Remove(filepath.Join(dir, SummaryFile)); err != nil {
		t.Fatal(err)
	}
	write(WeightsFile, earlier)
	if _, err := Open(dir); err != nil {
		t.Errorf("Open without a summary: %v", err)
	}
}

// settled must read again after a misfitError, at most three times in all, and not after other errors.
func TestSettled(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		errs []error // error of each call of read
		want string
	}{
		{[]error{nil}, ""},
		{[]error{broken, nil}, "broken"},
		{[]error{misfit("d", "a", "b"), fmt.Errorf("%w; really", misfit("d", "a", "b")), nil}, ""},
		{[]error{misfit("d", "a", "b"), misfit("d", "a", "b"), misfit("d", "a", "c"), nil}, "a and c in d don't belong together"},
	} {
		n := 0
		got, err := settled(func() (int, error) { n++; return n, test.errs[n-1] })
		if test.want != "" {
			wantError(t, err, test.want)
		} else if err != nil || got != len(test.errs) {
			t.Errorf("%v: got the result of reading %d, %v, want reading %d", test.errs, got, err, len(test.errs))
		}
	}
}

// A model whose rule has a Spell can't be opened without the rule, or with another rule of the same name.
func TestOpenNeedsTheRule(t *testing.T) {
	t.Parallel()
	rule := ownRule()
	rule.Spell = func(source, answer string) (string, string) { return strings.ToLower(source), answer }
	rule.Answer = func(source string) (string, error) { return ownRule().Answer(strings.ToLower(source)) }
	_, dir := trained(t, smaller(t, Defaults(rule)))
	_, err := Open(dir)
	wantError(t, err, filepath.Join(dir, ConfigFile), "the task own-rule isn't one of Heed's own", "pass the rule to Open")
	other := rule
	other.Alphabet = "abc"
	_, err = Open(dir, other)
	wantError(t, err, "the run's task own-rule differs from the known task of that name")
	model, err := Open(dir, rule)
	if err != nil {
		t.Fatal(err)
	}
	small, err := model.Predict("bad")
	if err != nil {
		t.Fatal(err)
	}
	if large, err := model.Predict("BAD"); err != nil || large != small {
		t.Errorf("BAD: got %q, %v, want %q, the answer to bad", large, err, small)
	}
}

// Open must return an error if only one of the learned rule and the known rule of its name has a Spell or a Read.
func TestOpenKnowsWhatSpells(t *testing.T) {
	t.Parallel()
	plain, err := toy.Named("copy", 0)
	if err != nil {
		t.Fatal(err)
	}
	mine := plain
	mine.Name = "mine"
	for _, rule := range []data.Rule{plain, mine} {
		spelled := rule
		spelled.Spell = func(source, answer string) (string, string) { return strings.ToUpper(source), answer }
		spelled.Alphabet += "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		rule.Alphabet = spelled.Alphabet
		_, dir := trained(t, smaller(t, Defaults(spelled)))
		_, err := Open(dir, rule)
		wantError(t, err, "the run's task "+rule.Name+" differs from the known task")
		if _, err := Open(dir, spelled); err != nil {
			t.Error(err)
		}
		_, dir = trained(t, smaller(t, Defaults(rule)))
		_, err = Open(dir, spelled)
		wantError(t, err, "the run's task "+rule.Name+" differs from the known task")
		if _, err := Open(dir, rule); err != nil {
			t.Error(err)
		}
	}
	plain.Read = func(spelled string) string { return spelled }
	_, dir := trained(t, smaller(t, Defaults(plain)))
	_, err = Open(dir) // compares with Heed's own rule
	wantError(t, err, "the run's task copy differs from the known task of that name")
}

// Open must return an error if the model of a config.json would need far too much memory.
func TestOpenRefusesRelativeBiases(t *testing.T) {
	t.Parallel()
	c := smaller(t, Defaults(ownRule()))
	c.Model.Positions = layers.RelativeBias{}
	_, dir := trained(t, c)
	path := filepath.Join(dir, ConfigFile)
	content := read(t, path)
	content = content[:strings.LastIndex(content, `,
  "sha256"`)]
	long := strings.Replace(content+"}", `"max_len": 5`, `"max_len": 65535`, 1)
	write(t, path, long)
	_, err := Open(dir)
	wantError(t, err, path, "with a bias for each of", "scores; at most 8 GiB are allowed")
}

// Predictors and graphs that nobody keeps must be freed.
func TestModelsFreeTheirGraphs(t *testing.T) {
	testseed.Slow(t)
	for _, name := range []string{"copy", "dates", "text"} {
		t.Run(name, func(t *testing.T) {
			task := made(t, small(t, name))
			round := func() {
				b, a := task.encode(task.Config.Task.Example)
				if a.Err != nil {
					t.Fatal(a.Err)
				}
				rows := []query{{ids: b.Inputs[:b.Lengths[0]]}}
				predict, err := task.network.predictor(task.shapeOf(rows, 1))
				if err != nil {
					t.Fatal(err)
				}
				if err := predict(t.Context(), rows); err != nil {
					t.Fatal(err)
				}
				if _, err := task.Attention(task.Config.Task.Example, ""); err != nil {
					t.Fatal(err)
				}
				if _, err := task.Evaluate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			round()
			before := memory.HeapInUse()
			const rounds = 10
			for range rounds {
				round()
			}
			if grown := memory.HeapInUse() - before; grown > rounds<<14 {
				t.Errorf("after %d rounds, the heap has grown by %d bytes, want at most %d", rounds, grown, rounds<<14)
			}
		})
	}
}

// Errors about values of a wrong type must name the setting as in config.json, and the wanted type without Go's types.
func TestConfigOfOtherTypes(t *testing.T) {
	for content, want := range map[string]string{
		`{"format": 4, "training": {"batches": 1}}`:   `unknown key "batches"`,
		`{"format": 4, "training": {"lr": 1}}`:        `unknown key "lr"; did you mean training.optimizer.learning_rate?`,
		`{"format": 4, "model": {"nLayer": 1}}`:       `unknown key "nLayer" in "model"; did you mean model.layers?`,
		`{"format": 4, "model": {"n_layer": 1}}`:      `a model's configuration: unknown key "n_layer"; did you mean layers?`,
		`{"format": 4, "model": {"block": {"x": 1}}}`: `a model's configuration: unknown key "x"`,
		`[]`:                                                    "it must be an object, got array",
		`{"format": "2"}`:                                       "format must be a whole number of at most 64 bits, got string",
		`{"format": 4, "task": 7}`:                              "task must be an object, got number",
		`{"format": 4, "seed": -1}`:                             "seed must be a whole number of at most 64 bits, not negative, got number -1",
		`{"format": 4, "spelled": 1}`:                           "spelled must be true or false, got number",
		`{"format": 4, "model": []}`:                            "a model's configuration: it must be an object, got array",
		`{"format": 4, "model": {"dim": 1e30}}`:                 "a model's configuration: dim must be a whole number of at most 64 bits, got number 1e30",
		`{"format": 4, "task": {"classes": "x"}}`:               "task.classes must be an array, got string",
		`{"format": 4, "training": {"label_smoothing": 1e999}}`: "training.label_smoothing must be a number that fits in 64 bits, got number 1e999",
		`{"format": 4, "model": {"block": {"attention": {"heads": "x"}}}}`:           "a model's configuration: block.attention.heads must be a whole number of at most 64 bits, got string",
		`{"format": 4, "model": {"block": {"feed_forward": {"activation": 1}}}}`:     "a model's configuration: block.feed_forward.activation must be a string, got number",
		`{"format": 4, "model": {"positions": {"kind": "learned", "max_len": "x"}}}`: "a model's configuration: positions of kind learned: max_len must be a whole number of at most 64 bits, got string",
		`{"format": 4, "model": {"positions": 1}}`:                                   "a model's configuration: positions: it must be an object, got number",
	} {
		if _, err := parseConfig([]byte(content)); err == nil || err.Error() != want {
			t.Errorf("%s: got the error\n%v, want\n%s", content, err, want)
		}
	}
}

// Train must return an error, before it makes the folder, if the configuration is too large to be read again.
func TestTrainRefusesLargeConfigs(t *testing.T) {
	c := smaller(t, Defaults(ownRule()))
	c.Task.About = strings.Repeat("a", maxConfig-400) // the other settings need more than 400 bytes
	dir := filepath.Join(t.TempDir(), "run")
	_, err := made(t, c).Train(t.Context(), dir, train.RunOptions{})
	wantError(t, err, "the configuration can't be saved: its file would have 1", "bytes, but at most 1000000 are read")
	if _, err := os.Stat(dir); err == nil {
		t.Error("Train made the folder")
	}
}

// FuzzReadConfig checks that ReadConfig returns an error, or a configuration that passes all checks.
func FuzzReadConfig(f *testing.F) {
	for _, name := range Names() {
		dir := f.TempDir()
		if err := writeJSON(dir, ConfigFile, small(f, name)); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(read(f, filepath.Join(dir, ConfigFile))))
	}
	f.Add([]byte(`{"format": 4, "task": {"name": "text", "kind": "text", "alphabet": "ab"}, "data": {"file": "x"}, "model": {"dim": 1e3}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, ConfigFile), string(content))
		c, err := ReadConfig(dir)
		if err != nil {
			return
		}
		if err := c.check(true); err != nil {
			t.Errorf("ReadConfig accepts what a check doesn't: %v", err)
		}
		if _, err := data.NewCoder(c.Task); err != nil {
			t.Errorf("ReadConfig accepts what a check doesn't: %v", err)
		}
		c.decide(data.Layout{Tokens: 100, Classes: 100, Len: 100}) // must not panic
	})
}
