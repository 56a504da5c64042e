package task

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// fromPublished returns settings for a very short run of a kind that begins as a published model.
func fromPublished(t *testing.T, kind data.Kind, dir, tune string) Config {
	t.Helper()
	c := small(t, string(kind))
	c.Mix = false
	c.From.Tune = tune
	must.Do(t, c.StartFrom(dir))
	c.Training.BatchSize, c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 32, 2, 0.01
	if c.Describe().Rows != nil {
		c.Task.MaxLen, c.Training.BatchSize, c.Training.StepsPerEpoch = 12, 4, 6
	}
	return c
}

// tunings are combinations of a kind, a published model and a Tune.
var tunings = []struct {
	kind       data.Kind
	from, tune string
}{
	{data.KindClassification, "bert", ""}, {data.KindClassification, "bert", "head"}, {data.KindClassification, "bert", "last:1"}, {data.KindClassification, "bert", "lora"},
	{data.KindClassification, "llama", "lora"}, {data.KindRegression, "mpnet-mask", "last:1"}, {data.KindRegression, "bert-classes", "head"},
	{data.KindTagging, "bert", "lora"},
	{data.KindText, "llama", ""}, {data.KindText, "gpt2", "last:1"}, {data.KindText, "llama-tied", "lora"},
	{data.KindMaskedText, "bert", "head"}, {data.KindMaskedText, "roberta-mask", "lora"}, {data.KindMaskedText, "bert-states", "last:1"},
	{data.KindClassification, "deberta-v2-mask", ""}, {data.KindTagging, "deberta-mask", "lora"}, {data.KindRegression, "albert-mask", "lora"},
	{data.KindMaskedText, "deberta-v2-mask", "last:1"}, {data.KindMaskedText, "electra", ""}, {data.KindMaskedText, "albert-mask", ""},
	{data.KindClassification, "bart-classes", ""}, {data.KindRegression, "bart-classes", "lora"},
	{data.KindSeq2Seq, "translators/bart", ""}, {data.KindSeq2Seq, "translators/bart", "lora"},
	{data.KindText, "deepseek_v3", ""}, {data.KindText, "deepseek_v3", "last:1"}, {data.KindText, "gpt_oss", "lora"},
}

// A run that begins as a published model must change only what it trains, save only that, give the same bytes when it
// is resumed, and answer in the same way when it is opened, also if the published folder has moved.
func TestTune(t *testing.T) {
	t.Parallel()
	for i, tt := range tunings {
		name := fmt.Sprintf("%s %s %s", tt.kind, tt.from, tt.tune)
		if i > 3 && testseed.LeftOut(name) { // the first are one of each way
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			published := publishedFolder(t, tt.from)
			c := fromPublished(t, tt.kind, published, tt.tune)
			task := made(t, c)
			if tt.kind == data.KindText && len(task.Loaded.Kept) > 0 { // the head is for the same tokens
				t.Errorf("the new tensors are %q, want none", task.Loaded.Kept)
			}
			before := task.Params.Snapshot()
			dir, again := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "again")
			run(t, task, dir, train.RunOptions{})

			saved := must.Get(safetensors.Open(filepath.Join(dir, runfolder.WeightsFile)))(t)
			saved.Close()
			var names []string
			for _, e := range saved.Entries {
				names = append(names, e.Name)
			}
			for i, p := range task.Params.All() {
				inFile := slices.Contains(names, p.Name)
				changed := !slices.Equal(p.Value.Data().([]float32), before[i].Data().([]float32))
				wants := tt.tune == "" || tt.tune != "lora" && (strings.Contains("."+p.Name, ".head.") || tt.tune == "last:1" && (strings.Contains(p.Name, "blocks.1.") || strings.HasPrefix(p.Name, "norm.")))
				if strings.HasPrefix(p.Name, "transform.") { // bert-classes has one
					wants = !c.Solved()
				}
				if tt.tune == "lora" {
					wants = changed // of the base, nothing changes; the head is in the adapter
				}
				choice := strings.HasSuffix(p.Name, ".choice") // has no gradient, and belongs to a whole model
				if changed != (wants && !choice) || tt.tune != "lora" && inFile != (wants && (!choice || tt.tune == "")) {
					t.Errorf("%s: changed %t, saved %t, want %t", p.Name, changed, inFile, wants)
				}
			}

			half := made(t, c)
			run(t, half, again, train.RunOptions{Workers: 1, MaxSteps: half.Problem().Train.Len/c.Training.BatchSize + 1})
			if tt.tune == "" {
				run(t, made(t, c), again, train.RunOptions{Workers: 2})
				wantFiles(t, again, dir, runfolder.ConfigFile)
			}

			opened := must.Get(Open(dir))(t)
			inputs := []string{"a cat sees", "elephant"}
			if task.Config.Task.Kind == data.KindMaskedText {
				inputs = []string{"a <mask>at sees", "<mask>"}
			}
			wantSame(t, opened, task.Model, inputs...)
			moved := filepath.Join(t.TempDir(), "moved")
			must.Do(t, os.Rename(published, moved))
			if tt.tune != "" && !c.Solved() { // the path of the base may change
				c := must.Get(ReadConfigBase(again, moved))(t)
				run(t, made(t, c), again, train.RunOptions{Workers: 2})
				if c = must.Get(ReadConfig(again))(t); c.From.Dir != moved {
					t.Errorf("the resumed run has the base %q, want %q", c.From.Dir, moved)
				}
			}
			wantFiles(t, again, dir, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.PublishedFile)
			if !c.Solved() {
				wantFiles(t, again, dir, runfolder.CheckpointFile)
			}
			if tt.tune == "" {
				wantSame(t, must.Get(Open(dir))(t), task.Model, inputs...)
				must.Refuse(OpenBase(dir, moved))(t, "leave out the base")
				return
			}
			must.Refuse(Open(dir))(t, "needs the model that it began from", "--base")
			wantSame(t, must.Get(OpenBase(dir, moved))(t), task.Model, inputs...)
			p := must.Get(pretrained.Open(moved, tensor.Float32))(t)
			p.Params.All()[0].Value.Zero()
			must.Do(t, p.Params.Save(filepath.Join(moved, "model.safetensors"), nil))
			must.Refuse(OpenBase(dir, moved))(t, "have changed since")
			c = must.Get(ReadConfig(dir))(t)
			c.From.Dir = dir // a forged base
			content := must.Get(configBytes(c))(t)
			write(t, filepath.Join(dir, runfolder.ConfigFile), string(content))
			must.Refuse(Open(dir))(t, "have changed since")
		})
	}
}

// Settings that make no sense must be errors that name them.
func TestTuneErrors(t *testing.T) {
	t.Parallel()
	published := publishedFolder(t, "bert")
	for _, tt := range []struct {
		tune   string
		change func(c *Config)
		words  []string
	}{
		{"last:9", nil, []string{"tune last:9", "2"}},
		{"last:x", nil, []string{"last:2", "last:x"}},
		{"some", nil, []string{"lora", "some"}},
		{"head", func(c *Config) { c.From.Dir = "" }, []string{"from.tune", "need from, the folder"}},
		{"", func(c *Config) { c.From = From{Base: "base"} }, []string{"from.base need from, the folder"}},
		{"head", func(c *Config) { c.From.LowRank = layers.LowRank{Rank: 2} }, []string{"from.low_rank.rank is only for"}},
		{"lora", func(c *Config) { c.From.LowRank.Targets = []string{"qurey"} }, []string{"qurey", "query"}},
		{"", func(c *Config) { c.Task.MaxLen = 33 }, []string{"at most 32 tokens"}},
	} {
		c := fromPublished(t, data.KindClassification, published, tt.tune)
		if tt.change != nil {
			tt.change(&c)
		}
		must.Refuse(New(c))(t, tt.words...)
	}
	must.Refuse(New(fromPublished(t, data.KindClassification, publishedFolder(t, "albert-mask"), "last:1")))(t, "last:1", "share them: choose all, head or lora")
	c := small(t, "copy")
	must.Fail(t, c.StartFrom(published), "draws its own examples")
	c = small(t, "seq2seq")
	must.Fail(t, c.StartFrom(published), "can start from a published model with an encoder and a decoder")
	c = small(t, "text")
	must.Fail(t, c.StartFrom(published), "predicts the next token")
	c = small(t, "mlm")
	must.Fail(t, c.StartFrom(publishedFolder(t, "llama")), "each token sees those after it")
}

// A run may begin from another run that began as a published model, for the same kind of task or another one.
func TestTuneTwice(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, tune := range []string{"", "lora"} {
		_, dir := trained(t, fromPublished(t, data.KindClassification, publishedFolder(t, "bert"), tune))
		first := must.Get(Open(dir))(t)
		for kind, fresh := range map[data.Kind]int{data.KindClassification: 0, data.KindRegression: 2, data.KindTagging: 2} {
			if testseed.LeftOut(fmt.Sprint(kind, tune)) {
				continue
			}
			c := fromPublished(t, kind, dir, "head")
			task := made(t, c)
			if len(task.Loaded.Kept) != fresh {
				t.Errorf("%s: the new parameters are %q, want %d", kind, task.Loaded.Kept, fresh)
			}
			for _, p := range first.Params.All() {
				if strings.HasPrefix(p.Name, "encoder.") && !slices.Equal(task.Params.Get(cmp.Or(map[bool]string{true: p.Name}[task.Params.Get(p.Name) != nil], strings.TrimPrefix(p.Name, "encoder."))).Value.Data().([]float32), p.Value.Data().([]float32)) {
					t.Errorf("%s: %s differs from the first run's", kind, p.Name)
				}
			}
			second := filepath.Join(t.TempDir(), "second")
			run(t, task, second, train.RunOptions{})
			if _, err := Open(second); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// An adapter must not be exported if other libraries would compute something else with it.
func TestExportAdapterErrors(t *testing.T) {
	t.Parallel()
	_, dir := trained(t, fromPublished(t, data.KindClassification, publishedFolder(t, "bert"), "lora"))
	must.Fail(t, ExportAdapter(dir, "", filepath.Join(t.TempDir(), "none")), `bert: pooling is "mean", and there it is "first"`)
	_, second := trained(t, fromPublished(t, data.KindClassification, dir, "lora"))
	must.Fail(t, ExportAdapter(second, "", filepath.Join(t.TempDir(), "none")), "isn't a published model", "export the whole model")
}

// An adapter that is exported must open on its base and answer as the run does.
func TestExportAdapter(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"llama", "gpt2"} {
		published := publishedFolder(t, from)
		_, dir := trained(t, fromPublished(t, data.KindText, published, "lora"))
		out := filepath.Join(t.TempDir(), "adapter")
		must.Do(t, ExportAdapter(dir, "", out))
		_, dirOfAll := trained(t, fromPublished(t, data.KindText, published, "last:1"))
		must.Fail(t, ExportAdapter(dirOfAll, "", filepath.Join(t.TempDir(), "none")), "has no adapter")
		var answers [3]string
		for i, open := range []func() (*Model, error){
			func() (*Model, error) { return Open(dir) },
			func() (*Model, error) { return OpenBase(out, published) },
			func() (*Model, error) { return Open(out) }, // the adapter names its base
		} {
			m := must.Get(open())(t)
			answers[i] = continued(t, m, "a cat", GenerateOptions{MaxTokens: 8})
		}
		if answers[0] != answers[1] || answers[0] != answers[2] {
			t.Errorf("%s: the run writes %q, and its adapter %q and %q", from, answers[0], answers[1], answers[2])
		}
		must.Do(t, os.Rename(published, published+"-moved"))
		must.Refuse(Open(out))(t, "say where that model is with --base")
		settings := filepath.Join(out, "adapter_config.json")
		write(t, settings, strings.Replace(read(t, settings), published, out, 1)) // a forged base
		must.Refuse(Open(out))(t, "that can't be opened")
	}
}

// An adapter on the head must open though peft also saves the base's weights of the head, and only with this base.
func TestAdapterOnHead(t *testing.T) {
	t.Parallel()
	base, other := publishedFolder(t, "mistral"), publishedFolder(t, "mistral")
	adapter := filepath.Join(base, "adapter")
	must.Get(OpenBase(adapter, base))(t)
	path := filepath.Join(other, "model.safetensors")
	tensors, metadata, err := safetensors.ReadFile(path)
	must.Do(t, err)
	for _, x := range tensors {
		if x.Name == "lm_head.weight" {
			x.Data.([]float32)[3]++
		}
	}
	var content bytes.Buffer
	must.Do(t, safetensors.Write(&content, tensors, metadata))
	write(t, path, content.String())
	must.Refuse(OpenBase(adapter, other))(t, adapter, "lm_head.base_layer.weight", "number 3", "the base that it was trained on")
}

// A run finds the model that it began from, although its path is relative: from every folder, after the folder above
// both has moved, and beside the run. So does an adapter.
func TestRelativeFrom(t *testing.T) {
	published, base, elsewhere := publishedFolder(t, "bert"), t.TempDir(), t.TempDir()
	project, moved, side := filepath.Join(base, "project"), filepath.Join(base, "moved"), filepath.Join(base, "side")
	rename := func(from, into string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(into), 0o777))
		must.Do(t, os.Rename(from, into))
	}
	rename(published, filepath.Join(project, "models", "bert"))
	t.Chdir(project)
	c := fromPublished(t, data.KindClassification, "models/bert", "lora")
	task, out := made(t, c), filepath.Join(base, "out", "run")
	run(t, task, "runs/x", train.RunOptions{})
	run(t, made(t, c), out, train.RunOptions{MaxSteps: 2})
	opens := func(dir string) {
		t.Helper()
		must.Get(Open(dir))(t)
	}
	opens("runs/x")
	t.Chdir(elsewhere)
	opens(filepath.Join(project, "runs", "x"))
	saved := must.Get(ReadConfig(out))(t)
	run(t, made(t, saved), out, train.RunOptions{})
	wantFiles(t, out, filepath.Join(project, "runs", "x"), runfolder.WeightsFile, runfolder.CheckpointFile)
	opens(out)

	rename(project, moved)
	opens(filepath.Join(moved, "runs", "x"))
	adapter := filepath.Join(moved, "adapters", "a")
	must.Do(t, os.MkdirAll(adapter, 0o777))
	write(t, filepath.Join(adapter, "adapter_config.json"), `{"base_model_name_or_path": "models/bert"}`)
	if _, _, err := model.ReadConfig(adapter, "", ""); err != nil {
		t.Error(err)
	}
	rename(filepath.Join(moved, "runs", "x"), filepath.Join(side, "x"))
	rename(filepath.Join(moved, "models", "bert"), filepath.Join(side, "bert"))
	opens(filepath.Join(side, "x"))
	rename(filepath.Join(side, "bert"), filepath.Join(base, "far", "bert"))
	must.Refuse(Open(filepath.Join(side, "x")))(t, "needs the model that it began from", "model.OpenBase")
	must.Get(OpenBase(filepath.Join(side, "x"), filepath.Join(base, "far", "bert")))(t)
}

// A task with a head of its own can begin from a model whose head Heed doesn't know.
func TestFromAnotherHead(t *testing.T) {
	t.Parallel()
	dir := publishedFolder(t, "bert-classes")
	config := filepath.Join(dir, "config.json")
	write(t, config, strings.Replace(read(t, config), "BertForSequenceClassification", "BertForMultipleChoice", 1))
	must.Refuse(Open(dir))(t, "BertForMultipleChoice")
	for kind, tune := range map[data.Kind]string{data.KindTagging: "head", data.KindClassification: "lora", data.KindEmbed: "lora", data.KindMaskedText: ""} {
		task := made(t, fromPublished(t, kind, dir, tune))
		if kept := task.Loaded.Kept; slices.ContainsFunc(kept, func(name string) bool { return strings.Contains(name, "blocks") }) {
			t.Errorf("%s: the new parameters are %q, want none of the encoder", kind, kept)
		}
		out := filepath.Join(t.TempDir(), "run")
		run(t, task, out, train.RunOptions{MaxSteps: 1})
		if _, err := Open(out); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
