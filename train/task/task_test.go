package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

func TestMain(m *testing.M) {
	testseed.KeepInMemory()
	debug.SetGCPercent(400) // collecting the garbage of tiny models takes as long as training them
	m.Run()
}

// small returns settings for a very short run of the named task.
func small(t testing.TB, name string) Config {
	t.Helper()
	c := must.Get(Named(name, 0))(t)
	return smaller(t, c)
}

func smaller(t testing.TB, c Config) Config {
	t.Helper()
	c.Model.Dim, c.Model.Block.Attention.Heads = 16, 2
	c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.MaxEpochs, c.Data.Validation = 16, 5, 2, 60
	if c.Describe().Predict == nil {
		c.Training.MicroBatches = 2
	}
	if c.Describe().Rows == nil && c.Task.Sample == nil {
		c.Model.Layers, c.Training.StepsPerEpoch, c.Data.Validation = 1, 0, 30
		c.Data.File = rowsFile(t, c.Task.Kind, 120)
	}
	if c.Describe().Rows != nil {
		c.Data.File = filepath.Join(t.TempDir(), "fox.txt")
		c.Task.MaxLen = 16
		fox := strings.Repeat("The quick brown fox jumps over the lazy dog, isn't that so?\n", 50)
		write(t, c.Data.File, fox)
	}
	return c
}

// rowsFile writes a file of rows and returns its path. For seq2seq, the rows have words and their spelling, and some
// sources occur twice. For classification, they have texts and whether these contain cat. For tagging, they have words
// and whether each is long.
func rowsFile(t testing.TB, kind data.Kind, rows int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	words := []string{"cat", "dog", "a", "the", "elephant", "hippopotamus", "sees", "runs"}
	var s strings.Builder
	for range rows {
		some := make([]string, 1+rng.IntN(6))
		for i := range some {
			some[i] = words[rng.IntN(len(words))]
		}
		switch kind {
		case data.KindSeq2Seq:
			letters := strings.Split(some[0]+some[len(some)-1], "")
			fmt.Fprintf(&s, "%s\t%s\n", strings.Join(letters, ""), strings.ToUpper(strings.Join(letters, " ")))
			if rng.IntN(9) == 0 {
				fmt.Fprintf(&s, "%s\t%s\n", strings.Join(letters, ""), "X "+strings.ToUpper(strings.Join(letters, " ")))
			}
		case data.KindEmbed:
			like := slices.Clone(some)
			slices.Reverse(like)
			fmt.Fprintf(&s, "%s\t%s like this\n", strings.Join(some, " "), strings.Join(like, " "))
		case data.KindRegression:
			fmt.Fprintf(&s, "%s\t%d\n", strings.Join(some, " "), len(some))
		case data.KindMultiLabel:
			labels := slices.DeleteFunc(slices.Clone(words[:4]), func(word string) bool { return !slices.Contains(some, word) })
			fmt.Fprintf(&s, "%s\t%s\n", strings.Join(some, " "), strings.Join(labels, "|"))
		case data.KindQA:
			fmt.Fprintf(&s, "after %s?\tso %s\t%s\n", some[0], strings.Join(append(some, "end"), " "), append(some, "end")[1])
		case data.KindClassification:
			fmt.Fprintf(&s, "%s\t%t\n", strings.Join(some, " "), slices.Contains(some, "cat"))
		default:
			tags := make([]string, len(some))
			for i := range tags {
				tags[i] = []string{"SHORT", "LONG"}[min(len(some[i])/5, 1)]
			}
			fmt.Fprintf(&s, "%s\t%s\n", strings.Join(some, " "), strings.Join(tags, " "))
		}
	}
	path := filepath.Join(t.TempDir(), string(kind)+".tsv")
	write(t, path, s.String())
	return path
}

func made(t testing.TB, c Config) *Task {
	t.Helper()
	task := must.Get(New(c))(t)
	t.Cleanup(func() { task.Close() })
	return task
}

// fitted returns a task whose model was trained a little, without a folder.
func fitted(t testing.TB, c Config) *Task {
	t.Helper()
	task := made(t, c)
	must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: task.Config.Seed, Workers: 1}))(t)
	return task
}

// trained returns a task and its finished run folder.
func trained(t testing.TB, c Config) (*Task, string) {
	t.Helper()
	task, dir := made(t, c), filepath.Join(t.TempDir(), "run")
	run(t, task, dir, train.RunOptions{Workers: 1})
	return task, dir
}

// run trains a task without an error.
func run(t testing.TB, task *Task, dir string, options train.RunOptions) *Summary {
	t.Helper()
	s := must.Get(task.Train(t.Context(), dir, options))(t)
	return s
}

func evaluated(t testing.TB, task *Task) Score {
	t.Helper()
	s := must.Get(task.Evaluate(t.Context()))(t)
	return s
}

func read(t testing.TB, path string) string {
	t.Helper()
	content := must.Get(os.ReadFile(path))(t)
	return string(content)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o666))
}

// wantResumed checks that a run that ends after some steps, and then resumes as its config.json says, with more
// workers, has the same bytes as the whole run in the folder want. It returns the task that resumed.
func wantResumed(t *testing.T, c Config, steps int, want string, more ...string) *Task {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "resumed")
	if s := run(t, made(t, c), dir, train.RunOptions{MaxSteps: steps, Workers: 1}); !s.Unfinished {
		t.Fatalf("%d steps are the whole run", steps)
	}
	task := made(t, must.Get(ReadConfig(dir))(t))
	run(t, task, dir, train.RunOptions{Workers: 2})
	wantFiles(t, dir, want, append(more, runfolder.ConfigFile, runfolder.WeightsFile, runfolder.CheckpointFile, runfolder.HistoryFile)...)
	return task
}

// wantFiles compares files of the run folder got with those of the folder want.
func wantFiles(t *testing.T, got, want string, names ...string) {
	t.Helper()
	for _, name := range names {
		if read(t, filepath.Join(got, name)) != read(t, filepath.Join(want, name)) {
			t.Errorf("%s differs from the file in %s", filepath.Join(got, name), want)
		}
	}
}

// wantSame compares the answers of two models. Numbers and log probabilities may differ by rounding.
func wantSame(t *testing.T, got, want *Model, inputs ...string) {
	t.Helper()
	answers := must.Get(got.PredictAll(t.Context(), inputs, PredictOptions{}))(t)
	for i, w := range must.Get(want.PredictAll(t.Context(), inputs, PredictOptions{}))(t) {
		g := answers[i]
		number := w.Number != nil && g.Number != nil && math.Abs(*g.Number-*w.Number) < 1e-4
		if w.Err != nil || g.Err != nil || !number && (g.Text != w.Text || !(math.Abs(g.LogProb-w.LogProb) < 1e-4)) {
			t.Errorf("%q: got the answer %+v, want %+v", inputs[i], g, w)
		}
	}
}

// ownRule returns a rule that isn't one of Heed's own: the answer is the source without vowels.
func ownRule() data.Rule {
	return data.Rule{
		Name: "own-rule", Kind: data.KindTagging, Alphabet: "abcdefghij", MaxLen: 5,
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
	named := map[string]Config{"own rule": smaller(t, Defaults(ownRule()))}
	for _, name := range Names() {
		named[name] = small(t, name)
	}
	experts := small(t, "copy")
	experts.Model.Block.FeedForward.Experts = &layers.ExpertsConfig{Count: 3, Top: 1, Unnormalized: true, Balance: 0.01}
	named["experts copy"] = experts
	for _, name := range []string{"brackets", "text"} { // with other layers
		c := small(t, name)
		c.Model.Positions, c.Model.Block.Norm.Kind, c.Model.Block.FeedForward.Gated = layers.Rotary{}, "rms", true
		c.Model.Block.Attention.KeyValueHeads = 1
		named["modern "+name] = c
	}
	return named
}

// Every setting of the data belongs to a source, and says to which.
func TestSourcesOfSettings(t *testing.T) {
	for f := range reflect.TypeFor[data.Settings]().Fields() {
		names := strings.Fields(f.Tag.Get("for"))
		if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return sourceNames[name] == "" }) {
			t.Errorf("%s is for the sources %q, want some of %v", f.Name, names, sourceNames)
		}
	}
}

func TestDefaultsAreRight(t *testing.T) {
	for _, name := range Names() {
		c := must.Get(Named(name, 0))(t)
		if c.Task.Sample == nil {
			c.Data.File = "x"
		}
		if err := c.check(kindOf(c.Task.Kind), false); err != nil {
			t.Errorf("the defaults of %s: got error %v", name, err)
		}
		if small := !slices.Contains(append(toy.Names(), "text", "mlm", "seq2seq", "multilabel", "qa"), name); (c.Model.EmbeddingInit.Scale == 0.02) != small {
			t.Errorf("the embeddings of %s begin as %+v; want them small: %t", name, c.Model.EmbeddingInit, small)
		}
	}
	c := must.Get(Named("classification", 0))(t)
	c.learnLabels()
	if c.Model.EmbeddingInit.Scale != 0 {
		t.Errorf("the embeddings for several labels begin as %+v, want large", c.Model.EmbeddingInit)
	}
	must.Refuse(Named("nope", 0))(t, `task must be one of reverse, `, `got "nope"`)
}

func TestNewErrors(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"nothing", func(c *Config) { *c = Config{} }, "format must be 5, got 0"},
		{"no samples", func(c *Config) { c.Task.Sample = nil }, `the task "copy" has no Sample or no Answer`},
		{"no kind", func(c *Config) { c.Task.Kind = "" }, "the kind must be"},
		{"a rule with long samples", func(c *Config) {
			sample := c.Task.Sample
			c.Task.Sample = func(rng *rand.Rand, maxLen int) string { return sample(rng, maxLen) + "abcdefghij" }
		}, "a source must have at most 10 symbols"},
		{"a file", func(c *Config) { c.Data.File = "x" }, "task copy draws its own examples, so it can't come with data.file"},
		{"quotes for two files", func(c *Config) {
			*c = withFile(t, "seq2seq", "x.csv", "a,b\n")
			c.Data.File, c.Data.TargetFile, c.Data.Quotes = "x", "y", "no"
		}, "data.quotes is for one file of rows, and task seq2seq learns two parallel files"},
		{"too many to validate on", func(c *Config) { c.Data.Validation = 1 << 12; c.Task.MaxLen = 1 }, "were found: use a smaller number"},
		{"another vocabulary", func(c *Config) { c.Model.Vocab = 29 }, "model.vocab must be 28 for this task, or 0 to choose it, got 29"},
		{"other classes", func(c *Config) { c.Model.Outputs = -1 }, "model.outputs must be 27"},
		{"few positions", func(c *Config) { c.Model.Positions = layers.Learned{MaxLen: 10} }, "model.positions.max_len must be from 11"},
		{"absurdly many", func(c *Config) { c.Model.Positions = layers.Learned{MaxLen: math.MaxInt / 2} }, "model.positions.max_len must be"},
		{"wide heads", func(c *Config) { c.Model.Block.Attention.HeadDim, c.Model.Block.Attention.Heads = 1<<14, 1<<10 }, "GiB"},
		{"dropout of all", func(c *Config) { c.Model.Block.FeedForward.Dropout = 1 }, "model.block.feed_forward.dropout must be at least 0 and below 1, got 1"},
		{"a bias for every distance", func(c *Config) {
			c.Task.MaxLen, c.Data.Validation, c.Training.BatchSize, c.Training.MicroBatches, c.Model.Positions = 1<<16-1, 1, 1, 0, layers.RelativeBias{}
			c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 4, 1, 1
		}, "GiB of memory, for 2.63e+05 parameters and batches of 6.55e+04 tokens, with a bias for each of 4.29e+09 scores"},
		{"absurd", func(c *Config) { c.Model.Dim, c.Model.Layers = 1<<14, 128 }, "GiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := small(t, "copy")
			test.change(&c)
			_, err := New(c)
			must.Fail(t, err, test.want)
			var wrong *ConfigError
			if !errors.As(err, &wrong) {
				t.Errorf("got the error %v of type %T, want a *ConfigError", err, err)
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

// The errors for a faulty rule must not blame data.validation.
func TestSplitErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"no answers", func(c *Config) {
			c.Task.Answer = func(string) (string, error) { return "", errors.New("none today") }
			c.Task.Sample = func(*rand.Rand, int) string { return "a" }
		}, `task copy: the source "a" from Sample has no answer: none today`},
		{"one source, held out", func(c *Config) {
			c.Task.Sample = func(*rand.Rand, int) string { return "a" }
			c.Seed = 17
		}, "task copy: seed 17 leaves no source to train on"},
		{"too many", func(c *Config) { c.Data.Validation = 1<<20 + 1 },
			"task copy: data.validation must be from 0 to 1048576 sources, got 1048577"},
	} {
		c := small(t, "copy")
		test.change(&c)
		if _, err := New(c); err == nil || err.Error() != test.want {
			t.Errorf("%s: got the error\n%v, want\n%s", test.name, err, test.want)
		}
	}
}

// ownPositions is a position scheme without a name in JSON.
type ownPositions struct{ layers.NoPositions }

// A run must resume in its folder. Other runs must not use the folder.
func TestTrainFolders(t *testing.T) {
	t.Parallel()
	task, dir := trained(t, small(t, "copy"))
	must.Refuse(task.Train(t.Context(), dir, train.RunOptions{}))(t, "is finished: there is nothing to resume")
	other := small(t, "copy")
	other.Seed = 2
	must.Refuse(made(t, other).Train(t.Context(), dir, train.RunOptions{}))(t, dir+" holds a run with another configuration")
	must.Do(t, os.Remove(filepath.Join(dir, runfolder.ConfigFile)))
	must.Refuse(task.Train(t.Context(), dir, train.RunOptions{}))(t, "has model.safetensors, but config.json is missing")

	own := small(t, "copy")
	own.Model.Positions = ownPositions{}
	unsaved := filepath.Join(t.TempDir(), "own")
	must.Refuse(made(t, own).Train(t.Context(), unsaved, train.RunOptions{}))(t, "the configuration can't be saved")
	if _, err := os.Stat(unsaved); err == nil {
		t.Error("Train made a run folder, want none")
	}

	ctx, cancel := context.WithCancel(t.Context())
	c := small(t, "copy")
	half := filepath.Join(t.TempDir(), "half")
	_, err := made(t, c).Train(ctx, half, train.RunOptions{OnStep: func(epoch, step int, _ float64) bool {
		if epoch == 1 {
			cancel()
		}
		return false
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want context.Canceled", err)
	}
	run(t, made(t, c), half, train.RunOptions{})
	wantFiles(t, half, dir, runfolder.WeightsFile)
}

// If the folder of a training is moved, Train must write nothing to a new folder of the old name. The run must resume
// in the moved folder.
func TestTrainMovedFolder(t *testing.T) {
	t.Parallel()
	c := small(t, "copy")
	_, want := trained(t, c)
	dir := filepath.Join(t.TempDir(), "run")
	moved := dir + "-2"
	_, err := made(t, c).Train(t.Context(), dir, train.RunOptions{OnStep: func(epoch, step int, _ float64) bool {
		if epoch == 1 && step == 3 {
			if err := os.Rename(dir, moved); err != nil {
				t.Skipf("this system can't move the folder of a training: %v", err)
			}
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Error(err)
			}
		}
		return false
	}})
	must.Fail(t, err, dir+" isn't this training's folder any more")
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the new folder holds %v, %v, want nothing", files, err)
	}
	run(t, made(t, c), moved, train.RunOptions{})
	wantFiles(t, moved, want, runfolder.ConfigFile, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.CheckpointFile)
}

// If a graph would confuse two weights, because Gorgonia's names for them collide, all functions that run it must
// return an error.
func TestCollisionsAreFound(t *testing.T) {
	task := made(t, Defaults(small(t, "copy").Task))
	for name, colliding := range map[string]string{"query": "t522789", "key": "t739192"} { // names that collide for the weights' shape
		task.Params.Get("blocks.0.attention." + name + ".weight").Name = colliding
	}
	_, evaluating := task.Evaluate(t.Context())
	_, predicting := task.Predict("gorgonia")
	_, attending := task.Attention("gorgonia", "")
	for _, err := range []error{evaluating, predicting, attending} {
		must.Fail(t, err, "another name")
	}
}

func TestGenerate(t *testing.T) {
	task := fitted(t, small(t, "text"))
	var s strings.Builder
	if g, err := task.Generate(t.Context(), &s, Prompt{Text: "The quick"}, GenerateOptions{MaxTokens: 40, Echo: true}); err != nil || g != (Generated{PromptTokens: 9, Tokens: 40, Finish: "length"}) || !strings.HasPrefix(s.String(), "The quick") || len(s.String()) != 49 {
		t.Errorf("Generate writes %q, %v, want the prompt and 40 characters", s.String(), err)
	}
	for _, test := range []struct {
		model        *Model
		prompt, want string
	}{
		{task.Model, "", "the input is empty"}, {task.Model, "é", "symbol 'é'"},
		{made(t, small(t, "copy")).Model, "abc", "is for the task copy, and only text models generate text"},
	} {
		s.Reset()
		_, err := test.model.Generate(t.Context(), &s, Prompt{Text: test.prompt}, GenerateOptions{MaxTokens: 1, Echo: true})
		must.Fail(t, err, test.want)
		var wrong *InputError
		if !errors.As(err, &wrong) || s.Len() > 0 {
			t.Errorf("%q: got error %v and %q written, want an *InputError and nothing written", test.prompt, err, s.String())
		}
	}
}

// By default, the number of micro-batches must be the largest of 4, 2 and 1 that divides the batch.
func TestMicroBatchesByDefault(t *testing.T) {
	for batch, want := range map[int]int{64: 4, 12: 4, 6: 2, 5: 1, 1: 1} {
		c := small(t, "copy")
		c.Training.BatchSize, c.Training.MicroBatches = batch, 0
		if got := made(t, c).Config.Training.MicroBatches; got != want {
			t.Errorf("a batch of %d has %d micro-batches, want %d", batch, got, want)
		}
	}
}

// The loss must not depend on the number of micro-batches: padding must not count in any of them.
func TestMicroBatches(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, name := range []string{"reverse", "brackets", "dates", "text"} {
		t.Run(name, func(t *testing.T) {
			losses := func(micro int) (losses []float64) {
				c := small(t, name)
				c.Training.MicroBatches, c.Training.MaxEpochs = micro, 1
				options := train.RunOptions{Workers: 2, OnStep: func(_, _ int, loss float64) bool {
					losses = append(losses, loss)
					return false
				}}
				run(t, made(t, c), t.TempDir(), options)
				return losses
			}
			want := losses(1)
			for _, micro := range []int{0, 2, 8} {
				if testseed.LeftOut(fmt.Sprint(name, micro)) {
					continue
				}
				for i, loss := range losses(micro) {
					if math.Abs(loss-want[i]) > 1e-4*want[i] {
						t.Errorf("step %d: the loss is %v with %d micro-batches, want %v as with one", i, loss, micro, want[i])
					}
				}
			}
		})
	}
}

// Frozen parameters must keep their exact values. The others must change.
func TestTrainFrozen(t *testing.T) {
	t.Parallel()
	task := made(t, smaller(t, Defaults(ownRule())))
	must.Do(t, task.Params.Freeze("embedding", "blocks.0.attention"))
	before := task.Params.Snapshot()
	run(t, task, filepath.Join(t.TempDir(), "run"), train.RunOptions{})
	frozen := 0
	for i, q := range task.Params.All() {
		if q.Frozen {
			frozen++
		}
		if same := slices.Equal(q.Value.Float32s(), before[i].Float32s()); same != q.Frozen {
			t.Errorf("%s: frozen is %t, unchanged is %t, want the same", q.Name, q.Frozen, same)
		}
	}
	if frozen < 9 {
		t.Errorf("%d parameters are frozen, want the embedding and the attention's parameters", frozen)
	}
}

// The estimate of leastMemory must be at most the estimate of train.Fit, and at least a quarter of it after subtracting
// 40 MB for the program.
func TestMemoryBound(t *testing.T) {
	for _, test := range []struct {
		name   string
		task   string
		change func(c *Config)
	}{
		{"copy", "copy", func(c *Config) {}},
		{"dates", "dates", func(c *Config) { c.Model.Dim, c.Training.BatchSize = 64, 256 }},
		{"text", "text", func(c *Config) { c.Model.Dim, c.Model.Layers, c.Training.BatchSize, c.Task.MaxLen = 128, 4, 48, 64 }},
		{"a large batch", "text", func(c *Config) {
			c.Model.Dim, c.Model.Layers, c.Training.BatchSize, c.Training.MicroBatches, c.Task.MaxLen = 128, 4, 96, 1, 64
		}},
		{"wide", "text", func(c *Config) { c.Model.Dim, c.Model.Layers, c.Data.Validation = 384, 4, 20 }},
		{"long", "text", func(c *Config) { c.Model.Dim, c.Training.BatchSize, c.Task.MaxLen, c.Data.Validation = 64, 8, 512, 20 }},
		{"all biases", "text", func(c *Config) {
			c.Training.BatchSize, c.Task.MaxLen, c.Data.Validation, c.Model.Positions = 8, 512, 20, layers.RelativeBias{}
		}},
	} {
		if testing.Short() && testseed.LeftOut(test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			c := small(t, test.task)
			if test.change(&c); c.Data.File != "" {
				write(t, c.Data.File, strings.Repeat("The quick brown fox jumps over the lazy dog\n", 2000))
			}
			memory.HeapInUse() // frees the garbage of other tests
			task := made(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			var takes float64
			options := train.RunOptions{Seed: c.Seed, Workers: 1, OnMemory: func(n int) { takes = float64(n); cancel() }}
			if _, err := train.Fit(ctx, task.Problem(), task.Config.Training.Config, options); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			bound, _ := task.Config.leastMemory(task.Coder.Layout(), task.set.size())
			t.Logf("train.Fit estimates %.0f MB, leastMemory %.0f MB", takes/(1<<20), bound/(1<<20))
			if bound > takes || takes > 40<<20+4*bound {
				t.Errorf("train.Fit estimates %.0f MB, leastMemory %.0f MB: want between a quarter of that and all", takes/(1<<20), bound/(1<<20))
			}
		})
	}
}
