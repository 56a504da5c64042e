package task

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// For every task, the opened model must give the trained model's answers, also to several goroutines at once, and the
// loaded weights must give the summary's score.
func TestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range configs(t) {
		if testseed.LeftOut(t.Name() + name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			task := made(t, c)
			dir := filepath.Join(t.TempDir(), "run")
			var log strings.Builder
			s := must.Get(task.Train(t.Context(), dir, train.RunOptions{Log: &log}))(t)
			if s.Epochs != 2 || s.Params != task.Params.Count() || s.Score.Total == 0 || *s.ValScore != s.Score.Value || !strings.Contains(log.String(), "Epoch 1: ") {
				t.Errorf("got the summary %+v and the log %q, want 2 epochs with a score", s, log.String())
			}
			again := made(t, task.Config)
			must.Do(t, again.Load(dir))
			if score, err := again.Evaluate(t.Context()); err != nil || score != s.Score {
				t.Errorf("Evaluate returns %+v, %v, want %+v", score, err, s.Score)
			}
			fromFS := must.Get(OpenFS(os.DirFS(dir)))(t)
			model := must.Get(Open(dir))(t)
			var asked sync.WaitGroup
			for _, input := range inputsOf(t, task) {
				want := must.Get(answerOf(task.Model, input))(t)
				for _, m := range []*Model{model, model, fromFS} {
					asked.Go(func() {
						if got, err := answerOf(m, input); err != nil || got != want {
							t.Errorf("%q: the opened model answers %q, %v, want %q", input, got, err, want)
						}
						if _, err := m.Attention(input, ""); err != nil {
							t.Error(err)
						}
					})
				}
			}
			asked.Wait()
			_, err := answerOf(model, "\xff")
			var wrong *InputError
			if !errors.As(err, &wrong) || wrong.Input != "\xff" {
				t.Errorf("an input that isn't UTF-8: got error %v", err)
			}
		})
	}
}

// answerOf returns the model's answer to an input or, if it has none, the vector.
func answerOf(m *Model, input string) (string, error) {
	if m.Config.Describe().Predict == nil {
		return m.Predict(input)
	}
	vectors, _, err := m.Embed(context.Background(), []string{input})
	return fmt.Sprint(vectors), err
}

// inputsOf returns some inputs for a task.
func inputsOf(t testing.TB, task *Task) []string {
	if task.Config.Task.Kind == data.KindMaskedText {
		return []string{"[MASK]he", "quick [MASK][MASK]own fox", "[MASK]"}
	}
	if task.Config.Task.Kind == data.KindText {
		return []string{"The", "quick brown fox jumps", "z", "\n"}
	}
	if rows, ok := task.set.(*rowSet); ok {
		inputs := []string{"zebra" + strings.Repeat("\tzebra", len(task.Config.Task.Parts(rows.Train.Example(0).Source))-1)}
		for i := range 3 {
			inputs = append(inputs, rows.Train.Example(i).Source)
		}
		return inputs
	}
	var inputs []string
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		inputs = append(inputs, task.Config.Task.Sample(rng, task.Config.Task.MaxLen))
	}
	return inputs
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
	earlier := read(dir, runfolder.WeightsFile)
	run(t, made(t, c), dir, train.RunOptions{})
	good, summary := read(dir, runfolder.WeightsFile), read(dir, runfolder.SummaryFile)
	var plain bytes.Buffer // the same tensors without a checksum
	tensors, metadata, err := safetensors.ReadFile(filepath.Join(dir, runfolder.WeightsFile))
	if err == nil {
		err = safetensors.Write(&plain, tensors, metadata)
	}
	must.Do(t, err)
	c.Seed++
	_, other := trained(t, c)
	c.Seed--

	from := small(t, "copy")
	must.Do(t, from.StartFrom(dir))
	loaded, opened := made(t, c), made(t, c)
	want := fmt.Sprint(loaded.Params.Snapshot())
	for name, file := range map[string]struct {
		name, content string
	}{
		"an earlier check's":     {runfolder.WeightsFile, earlier},
		"without a checksum":     {runfolder.WeightsFile, strings.Replace(plain.String(), "heed.sha256", "hood.sha256", 1)},
		"another seed's summary": {runfolder.SummaryFile, read(other, runfolder.SummaryFile)},
	} {
		t.Run(name, func(t *testing.T) {
			write(file.name, file.content)
			words := []string{runfolder.SummaryFile + " and " + runfolder.WeightsFile, dir, "don't belong together"}
			must.Refuse(Open(dir))(t, words...)
			must.Refuse(OpenFS(os.DirFS(dir)))(t, "don't belong together")
			must.Fail(t, loaded.Load(dir), words...)
			if fmt.Sprint(loaded.Params.Snapshot()) != want {
				t.Error("Load returned an error, but changed the parameters")
			}
			must.Refuse(New(from))(t, words...)
			write(runfolder.WeightsFile, good)
			write(runfolder.SummaryFile, summary)
			must.Do(t, cmp.Or(opened.Load(dir), made(t, from).Close()))
		})
	}
	c.Training.MaxEpochs++ // runs with the same id may have different MaxEpochs
	_, longer := trained(t, c)
	write(runfolder.WeightsFile, read(longer, runfolder.WeightsFile))
	write(runfolder.SummaryFile, read(longer, runfolder.SummaryFile))
	must.Refuse(Open(dir))(t, runfolder.SummaryFile+" and "+runfolder.ConfigFile, dir, "don't belong together")

	write(runfolder.SummaryFile, "{")
	must.Refuse(Open(dir))(t, runfolder.SummaryFile+" can't be read, or was changed")
	must.Do(t, os.Remove(filepath.Join(dir, runfolder.SummaryFile)))
	write(runfolder.WeightsFile, earlier)
	if _, err := Open(dir); err != nil {
		t.Errorf("Open without a summary: %v", err)
	}
}

// A model whose rule has a Spell can't be opened without the rule, or with another rule of the same name.
func TestOpenNeedsTheRule(t *testing.T) {
	t.Parallel()
	rule := ownRule()
	rule.Spell = func(source, answer string) (string, string) { return strings.ToLower(source), answer }
	rule.Answer = func(source string) (string, error) { return ownRule().Answer(strings.ToLower(source)) }
	_, dir := trained(t, smaller(t, Defaults(rule)))
	must.Refuse(Open(dir))(t, filepath.Join(dir, runfolder.ConfigFile), "the task own-rule isn't one of Heed's own", "pass the rule to Open")
	other := rule
	other.Alphabet = "abc"
	must.Refuse(Open(dir, other))(t, "the run's task own-rule differs from the known task of that name")
	model := must.Get(Open(dir, rule))(t)
	small := must.Get(model.Predict("bad"))(t)
	if large, err := model.Predict("BAD"); err != nil || large != small {
		t.Errorf("BAD: got %q, %v, want %q, the answer to bad", large, err, small)
	}
}

// Open must return an error if only one of the learned rule and the known rule of its name has a Spell or a Read.
func TestOpenKnowsWhatSpells(t *testing.T) {
	t.Parallel()
	plain := must.Get(toy.Named("copy", 0))(t)
	mine := plain
	mine.Name = "mine"
	for _, rule := range []data.Rule{plain, mine} {
		spelled := rule
		spelled.Spell = func(source, answer string) (string, string) { return strings.ToUpper(source), answer }
		spelled.Alphabet += "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		rule.Alphabet = spelled.Alphabet
		_, dir := trained(t, smaller(t, Defaults(spelled)))
		must.Refuse(Open(dir, rule))(t, "the run's task "+rule.Name+" differs from the known task")
		must.Get(Open(dir, spelled))(t)
		_, dir = trained(t, smaller(t, Defaults(rule)))
		must.Refuse(Open(dir, spelled))(t, "the run's task "+rule.Name+" differs from the known task")
		must.Get(Open(dir, rule))(t)
	}
	plain.Read = func(spelled string) string { return spelled }
	_, dir := trained(t, smaller(t, Defaults(plain)))
	_, err := Open(dir) // compares with Heed's own rule
	must.Fail(t, err, "the run's task copy differs from the known task of that name")
}

// If a model's parameters need terabytes, Open must refuse it before it allocates memory for them. If only training
// would need too much memory, Open must open the model.
func TestOpenJudgesMemory(t *testing.T) {
	t.Parallel()
	saved := func(change func(c *Config)) (dir string, c Config) {
		c = made(t, small(t, "copy")).Config
		change(&c)
		content := must.Get(configBytes(c))(t)
		dir = t.TempDir()
		write(t, filepath.Join(dir, runfolder.ConfigFile), string(content))
		return dir, c
	}
	weights := func(p *layers.Params, dir string, c Config) {
		must.Do(t, p.Save(filepath.Join(dir, runfolder.WeightsFile), runfolder.Metadata(c.id())))
	}
	dir, c := saved(func(c *Config) { c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 1<<14, 128, 1 })
	weights(made(t, small(t, "copy")).Params, dir, c)
	start := time.Now()
	must.Refuse(Open(dir))(t, runfolder.ConfigFile, "the model has at least 3.44e+11 parameters, which take 1.28e+03 GiB, but model.safetensors has only")
	if taken := time.Since(start); taken > time.Second {
		t.Errorf("refusing a model of terabytes took %v, want less than a second", taken)
	}

	dir, c = saved(func(c *Config) {
		c.Training.BatchSize, c.Training.MicroBatches, c.Model.Block.FeedForward.Hidden = 1<<16, 1, 4096
	})
	m := must.Get(model.New(&c.Config, nil))(t)
	weights(m.Params, dir, c)
	want := must.Get(m.Predict("abc"))(t)
	wantAnswers(t, dir, map[string]string{"abc": want})
	c.Task = small(t, "copy").Task
	must.Refuse(New(c))(t, "training would need at least", "at most 8 GiB are allowed")
}

// If a folder isn't a run folder, the error must say what it holds.
func TestFoldersThatAreNoRuns(t *testing.T) {
	for _, test := range []struct{ config, adapter, want string }{
		{"", "", "isn't a run folder: it has no config.json; heed train makes one"},
		{`{}`, "", `config.json has no "format"; heed train makes one`},
		{`{"model_type": "llama", "hidden_size": 64}`, "", "the folder must have a tokenizer.json"},
		{`{"model_type": "neither"}`, `{}`, `model_type "neither" isn't supported`},
		{"", `{"peft_type": "LORA"}`, "which isn't a folder here: say where that model is with --base"},
		{`{"format": 3, "model_type": "llama"}`, "", "has the older format 3"},
		{`{"format": 6}`, `{}`, "has the newer format 6"},
		{`{"model_type": `, "", "it isn't complete JSON"},
		{`[]`, "", "it must be an object, got array"},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{runfolder.ConfigFile: test.config, "adapter_config.json": test.adapter} {
			if content != "" {
				write(t, filepath.Join(dir, name), content)
			}
		}
		_, reading := ReadConfig(dir)
		_, opening := Open(dir)
		c := small(t, "copy")
		for _, err := range []error{reading, opening, c.StartFrom(dir), made(t, c).Load(dir)} {
			if test.adapter == "" && strings.Contains(test.config, "hidden_size") && strings.Contains(err.Error(), "there are no weights") {
				continue // Load doesn't read a tokenizer
			}
			must.Fail(t, err, dir, test.want)
		}
	}
}

// Predictors and graphs that nobody keeps must be freed.
func TestModelsFreeTheirGraphs(t *testing.T) {
	testseed.Slow(t)
	for _, name := range []string{"copy", "dates", "text"} {
		t.Run(name, func(t *testing.T) {
			task := made(t, small(t, name))
			round := func() {
				must.Get(task.Predict(task.Config.Task.Example))(t)
				must.Get(task.Attention(task.Config.Task.Example, ""))(t)
				must.Get(task.Evaluate(t.Context()))(t)
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
		`{"format": 5, "training": {"batches": 1}}`:   `unknown key "batches"`,
		`{"format": 5, "training": {"lr": 1}}`:        `unknown key "lr"; did you mean training.optimizer.learning_rate?`,
		`{"format": 5, "model": {"nLayer": 1}}`:       `unknown key "nLayer" in "model"; did you mean model.layers?`,
		`{"format": 5, "model": {"n_layer": 1}}`:      `a model's configuration: unknown key "n_layer"; did you mean layers?`,
		`{"format": 5, "model": {"block": {"x": 1}}}`: `a model's configuration: unknown key "x"`,
		`[]`:                                                    "it must be an object, got array",
		`{"format": "2"}`:                                       "format must be a whole number of at most 64 bits, got string",
		`{"format": 5, "task": 7}`:                              "task must be an object, got number",
		`{"format": 5, "seed": -1}`:                             "seed must be a whole number of at most 64 bits, not negative, got number -1",
		`{"format": 5, "spelled": 1}`:                           "spelled must be true or false, got number",
		`{"format": 5, "model": []}`:                            "a model's configuration: it must be an object, got array",
		`{"format": 5, "model": {"dim": 1e30}}`:                 "a model's configuration: dim must be a whole number of at most 64 bits, got number 1e30",
		`{"format": 5, "head": {"pooling": 1}}`:                 "head.pooling must be a string, got number",
		`{"format": 5, "task": {"classes": "x"}}`:               "task.classes must be an array, got string",
		`{"format": 5, "training": {"label_smoothing": 1e999}}`: "training.label_smoothing must be a number that fits in 64 bits, got number 1e999",
		`{"format": 5, "model": {"block": {"attention": {"heads": "x"}}}}`:           "a model's configuration: block.attention.heads must be a whole number of at most 64 bits, got string",
		`{"format": 5, "model": {"block": {"feed_forward": {"activation": 1}}}}`:     "a model's configuration: block.feed_forward.activation must be a string, got number",
		`{"format": 5, "model": {"positions": {"kind": "learned", "max_len": "x"}}}`: "a model's configuration: positions of kind learned: max_len must be a whole number of at most 64 bits, got string",
		`{"format": 5, "model": {"positions": 1}}`:                                   "a model's configuration: positions: it must be an object, got number",
	} {
		if _, err := parsed(t, content); err == nil || err.Error() != want {
			t.Errorf("%s: got the error\n%v, want\n%s", content, err, want)
		}
	}
}

// Train must return an error, before it makes the folder, if the configuration is too large to be read again.
func TestTrainRefusesLargeConfigs(t *testing.T) {
	c := smaller(t, Defaults(ownRule()))
	c.Task.About = strings.Repeat("a", runfolder.MaxConfig-400) // the other settings need more than 400 bytes
	dir := filepath.Join(t.TempDir(), "run")
	must.Refuse(made(t, c).Train(t.Context(), dir, train.RunOptions{}))(t, "the configuration can't be saved: its file would have 1", "bytes, but at most 1000000 are read")
	if _, err := os.Stat(dir); err == nil {
		t.Error("Train made the folder")
	}
}

// FuzzReadConfig checks that ReadConfig returns an error, or a configuration that passes all checks.
func FuzzReadConfig(f *testing.F) {
	for _, name := range Names() {
		content := must.Get(configBytes(small(f, name)))(f)
		f.Add(content)
	}
	f.Add([]byte(`{"format": 5, "task": {"name": "text", "kind": "text", "alphabet": "ab"}, "data": {"file": "x"}, "model": {"dim": 1e3}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, runfolder.ConfigFile), string(content))
		c, err := ReadConfig(dir)
		if err != nil {
			return
		}
		if err := c.check(kindOf(c.Task.Kind), true); err != nil {
			t.Errorf("ReadConfig accepts what a check doesn't: %v", err)
		}
		if _, err := data.NewCoder(c.Task); err != nil {
			t.Errorf("ReadConfig accepts what a check doesn't: %v", err)
		}
		c.Decide(data.Layout{Tokens: 100, Classes: 100, Len: 100}) // must not panic
	})
}

// parsed returns what ReadConfig makes of the content of a config.json. The checksum is that of the content.
func parsed(t testing.TB, content string) (Config, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, runfolder.ConfigFile), content)
	c, err := ReadConfig(dir)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), filepath.Join(dir, runfolder.ConfigFile)+": "))
	}
	return c, err
}
