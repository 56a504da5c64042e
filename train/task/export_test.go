package task

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

var exported = flag.String("exported", "", "write the folders that TestExport exports, and what their models compute, to this folder, for testdata/check_export.py")

// A computed is a text, and what a model computes with it.
type computed struct {
	Text   string    `json:"text"`
	IDs    []int     `json:"ids"`
	Logits []float32 `json:"logits"` // (tokens, ids)
	Tokens int       `json:"tokens"` // number of tokens of the continuation
	Greedy string    `json:"greedy"` // the text with its likeliest continuation
}

func compute(t *testing.T, m *Model, text string) computed {
	t.Helper()
	source, _ := m.Coder.Tokenizers()
	var ids []int
	if p, ok := source.(*tokenizer.Pipeline); ok {
		for _, token := range must.Get(p.Input(text))(t).Tokens {
			ids = append(ids, token.ID)
		}
	} else {
		ids = must.Get(source.Encode(text))(t)
	}
	c := computed{Text: text, IDs: ids, Tokens: m.Coder.Layout().Len - len(ids)}
	c.Logits = outputOf(t, len(ids), func(b *layers.Build, x *G.Node) (*G.Node, error) {
		return m.Network.Forward(b, G.Nodes{x})
	}, ids)
	c.Greedy = continued(t, m, text, GenerateOptions{MaxTokens: c.Tokens, Echo: true})
	return c
}

func continued(t *testing.T, m *Model, text string, o GenerateOptions) string {
	t.Helper()
	var s strings.Builder
	must.Get(m.Generate(t.Context(), &s, Prompt{Text: text}, o))(t)
	return s.String()
}

// An exported model must compute the same as the run, with the same bits if the weights are the same.
func TestExport(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *Config)
		kind   string
		limit  float64 // of differences
	}{
		"characters": {func(c *Config) {}, "gpt2", 1e-5},
		"byte pairs": {func(c *Config) { c.Data.SourceUnits, c.Data.VocabSize = tokenizer.BPE, 280 }, "gpt2", 1e-5},
		"rotary":     {func(c *Config) { c.Model.Positions = layers.Rotary{} }, "gpt_neox", 1e-5},
		"gpt2":       {func(c *Config) { c.Model.Tied, c.Model.EmbeddingScale = true, 1 }, "gpt2", 0},
		"llama": {func(c *Config) {
			c.Model.NoBias, c.Model.Positions = true, layers.Rotary{}
			c.Model.Block.Norm.Kind, c.Model.Block.Attention.NoBias = "rms", true
			c.Model.Block.FeedForward = layers.FeedForwardConfig{Hidden: 24, Activation: layers.SiLU, Gated: true, NoBias: true}
		}, "llama", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := small(t, "text")
			write(t, c.Data.File, manyScripts)
			test.change(&c)
			m := fitted(t, c).Model
			folder := filepath.Join(t.TempDir(), "new")
			if *exported != "" {
				folder = filepath.Join(*exported, strings.ReplaceAll(name, " ", "-"))
			}
			must.Do(t, m.Export(folder))
			again := must.Get(Open(folder))(t)
			if again.Config.Task.Name != test.kind {
				t.Errorf("exported as %s, want %s", again.Config.Task.Name, test.kind)
			}
			var all []computed
			for _, text := range []string{"Le ", "says hello", "à 世界 🙂"} {
				want, got := compute(t, m, text), compute(t, again, text)
				all = append(all, want)
				if !slices.Equal(got.IDs, want.IDs) || got.Greedy != want.Greedy {
					t.Errorf("%q: got ids %v and the continuation %q, want %v and %q", text, got.IDs, got.Greedy, want.IDs, want.Greedy)
				}
				for i, x := range want.Logits {
					if math.Abs(float64(got.Logits[i]-x)) > test.limit {
						t.Fatalf("%q: logit %d is %g, want %g", text, i, got.Logits[i], x)
					}
				}
				o := GenerateOptions{Sampler: again.Sampler(), Seed: 3, MaxTokens: want.Tokens}
				if o.Sampler.Temperature != 1 {
					t.Errorf("the sampler is %+v", o.Sampler)
				}
				if got, want := continued(t, again, text, o), continued(t, m, text, o); test.limit == 0 && got != want {
					t.Errorf("%q: sampled %q, want %q", text, got, want)
				}
			}
			if *exported != "" {
				content := must.Get(json.Marshal(all))(t)
				write(t, folder+".json", string(content))
			}
		})
	}
}

// A model opened from a published folder must be exported with that folder's tokenizer and settings of embeddings.
func TestExportPublished(t *testing.T) {
	classes := openedFolder(t, "llama-classes")
	text := openedFolder(t, "qwen2-tied")
	vectors := func() *Model {
		dir := publishedFolder(t, "llama-states")
		for name, content := range map[string]string{
			"modules.json":                      `[{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}, {"path": "2_Dense", "type": "Dense"}, {"path": "3_Normalize", "type": "Normalize"}]`,
			"2_Dense/config.json":               `{"in_features": 16, "out_features": 5, "bias": false, "activation_function": "torch.nn.modules.linear.Identity"}`,
			"config_sentence_transformers.json": `{"prompts": {"query": "q. "}, "default_prompt_name": "query"}`,
			"sentence_bert_config.json":         `{"max_seq_length": 12}`,
			"1_Pooling/config.json":             `{"pooling_mode_cls_token": true}`,
		} {
			os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777)
			write(t, filepath.Join(dir, name), content)
		}
		var file strings.Builder
		must.Do(t, safetensors.Write(&file, []safetensors.Tensor{{Name: "linear.weight", Shape: []int{5, 16}, Data: slices.Repeat([]float32{0.5, -1, 2}, 27)[:80]}}, nil))
		write(t, filepath.Join(dir, "2_Dense", "model.safetensors"), file.String())
		return must.Get(Open(dir))(t)
	}()
	for _, m := range []*Model{classes, text, vectors} {
		dir := t.TempDir() // empty
		must.Do(t, m.Export(dir))
		again := must.Get(Open(dir))(t)
		if !runfolder.SameJSON(again.Config.Task, m.Config.Task) || !reflect.DeepEqual(again.Config.Head, m.Config.Head) {
			t.Errorf("exported %+v with %+v, opened %+v with %+v", m.Config.Task, m.Config.Head, again.Config.Task, again.Config.Head)
		}
		for _, input := range []string{"a text", "?"} {
			switch m.Config.Task.Kind {
			case data.KindText:
				if got, want := compute(t, again, input), compute(t, m, input); got.Greedy != want.Greedy || !slices.Equal(got.Logits, want.Logits) {
					t.Errorf("text %q: got %+v, want %+v", input, got, want)
				}
			case data.KindEmbed:
				got, n, err := again.Embed(t.Context(), []string{input})
				want, count, failed := m.Embed(t.Context(), []string{input})
				if err != nil || failed != nil || n != count || !slices.Equal(got[0], want[0]) {
					t.Errorf("vector of %q: %v, want %v, errors %v, %v", input, got, want, err, failed)
				}
			default:
				wantSame(t, again, m, input)
			}
		}
	}
}

// What can't be exported must leave nothing behind, and a folder with files must stay as it is.
func TestExportErrors(t *testing.T) {
	c := small(t, "text")
	c.Model.Block.Norm.Kind = "rms"
	unitsOf := func(source, target tokenizer.Units) Config {
		c := withFile(t, "tagging", "rows.tsv", someRows(data.KindTagging))
		c.Data.SourceUnits, c.Data.TargetUnits = source, target
		return c
	}
	for name, test := range map[string]struct {
		c    Config
		want string
	}{
		"rms":            {c, `the nearest is gpt2: block.norm.kind is "rms", and there it is "layer"; no_bias is false`},
		"words":          {unitsOf("words", "tokens"), "it tags words with a vocabulary of its own, which published models don't: use --units tokens, or begin with a published model (--from)"},
		"letters":        {unitsOf("characters", "characters"), "it tags characters with"},
		"classification": {withFile(t, "classification", "rows.tsv", someRows(data.KindClassification)), "models of kind classification have no published equal unless they began as a published model"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		err := made(t, test.c).Export(dir)
		if must.Fail(t, err, test.want); err != nil {
			if _, found := os.Stat(dir); found == nil {
				t.Errorf("%s: there is a folder", name)
			}
		}
	}
	full := t.TempDir()
	write(t, filepath.Join(full, "notes.txt"), "mine")
	must.Fail(t, made(t, small(t, "text")).Export(full), "isn't empty: it has notes.txt")
	if got := read(t, filepath.Join(full, "notes.txt")); got != "mine" {
		t.Errorf("the file has %q", got)
	}
}

// A tagger of tokens from new weights must be exported as a model that gives the same tags. A token of several words is
// one of its entities.
func TestExportTags(t *testing.T) {
	t.Parallel()
	rows := "tokens\ttags\n"
	for i := range 120 {
		name, place := []string{"Ann", "O'Hara", "Zoë"}[i%3], []string{"U.S.A.", "Bern"}[i/3%2]
		rows += fmt.Sprintf("%s saw %s isn't%s\tB-PER O B-LOC O%s\n", name, place, strings.Repeat(" x", i/6), strings.Repeat(" O", i/6))
	}
	for kind, positions := range map[string]layers.PositionsConfig{"gpt_neox": layers.Rotary{}, "gpt2": layers.Learned{MaxLen: 64}} {
		c := withFile(t, "tagging", "rows.tsv", rows)
		c.Model.Positions, c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = positions, 6, 0.01
		_, run := trained(t, c)
		m := must.Get(Open(run))(t)
		m.Mixture = mixture{Linear: 0.25, Temperature: 2}
		var notes []string
		m.Note = func(note string) { notes = append(notes, note) }
		folder := filepath.Join(t.TempDir(), "new")
		if err := m.Export(folder); err != nil || len(notes) != 1 {
			t.Fatalf("%s: %v, with the notes %q", kind, err, notes)
		}
		again := must.Get(Open(folder))(t)
		if again.Config.Task.Name != kind || len(again.Config.Task.Classes) != 3 {
			t.Errorf("exported as %s with the tags %q, want %s", again.Config.Task.Name, again.Config.Task.Classes, kind)
		}
		must.Do(t, m.UseNetwork())
		texts := []string{"O'Hara saw U.S.A. x x", "Ann isn't  in U.S.A.", "Bob saw O'Hara Zoë's"}
		got, want := must.Get(again.PredictAll(t.Context(), texts, PredictOptions{}))(t), must.Get(m.PredictAll(t.Context(), texts, PredictOptions{}))(t)
		for i := range texts {
			for j := range got[i].Spans {
				got[i].Spans[j].Score = 0
			}
			if got[i].Text != want[i].Text || !slices.Equal(got[i].Spans, want[i].Spans) || len(want[i].Spans) == 0 {
				t.Errorf("%s: %q: got %+v, want %+v", kind, texts[i], got[i], want[i])
			}
		}
	}
}

// Of a mixture, the network is exported, with a note. A head that was solved together with n-grams is refused.
func TestExportMixture(t *testing.T) {
	t.Parallel()
	_, run := trained(t, fromPublished(t, data.KindClassification, publishedFolder(t, "bert-classes"), "last:1"))
	m := must.Get(Open(run))(t)
	var notes []string
	m.Note = func(note string) { notes = append(notes, note) }
	m.Mixture = mixture{Linear: 0.25, Temperature: 2}
	dir := filepath.Join(t.TempDir(), "new")
	if err := m.Export(dir); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "only the network is exported") || m.Mixture.Linear != 0.25 {
		t.Fatalf("Export returns %v, with the notes %q and the mixture %+v", err, notes, m.Mixture)
	}
	must.Do(t, m.UseNetwork())
	wantSame(t, must.Get(Open(dir))(t), m, "a cat sees", "elephant")
	if err := m.Export(filepath.Join(t.TempDir(), "alone")); err != nil || len(notes) != 1 {
		t.Errorf("the network alone: Export returns %v, with the notes %q", err, notes)
	}
	solved := fromPublished(t, data.KindClassification, publishedFolder(t, "bert-classes"), "head")
	solved.Mix = true
	_, run = trained(t, solved)
	must.Fail(t, must.Get(Open(run))(t).Export(filepath.Join(t.TempDir(), "new")), "was solved together with n-grams")
}

// A run that began as a published model must be exported as such a model, which gives the same answers, or not at all.
func TestExportFineTuned(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, tt := range []struct {
		kind             data.Kind
		from, tune, want string // want is of the error
	}{
		{data.KindText, "llama", "", ""},
		{data.KindText, "llama-tied", "lora", ""},
		{data.KindText, "gpt2", "last:1", ""},
		{data.KindMaskedText, "bert", "", ""},
		{data.KindMaskedText, "mpnet-mask", "lora", ""},
		{data.KindClassification, "llama-classes", "", ""},
		{data.KindClassification, "bert-classes", "head", ""},
		{data.KindClassification, "bart-classes", "", ""},
		{data.KindRegression, "bert-classes", "head", ""},
		{data.KindClassification, "bert", "", `pooling is "mean", and there it is "first"; transform.activation is not set, and there it is "tanh"`},
		{data.KindRegression, "llama-classes", "", "the head of a llama has no bias"},
		{data.KindQA, "bert", "", ""},
		{data.KindQA, "mpnet-mask", "lora", ""},
		{data.KindTagging, "bert", "", ""},
		{data.KindTagging, "modernbert", "", "transform"},
	} {
		name := fmt.Sprintf("%s %s", tt.kind, tt.from)
		if testseed.LeftOut(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := publishedFolder(t, tt.from)
			if tt.from == "bert" && tt.want == "" { // as sentence-transformers writes it: the model embeds texts
				write(t, filepath.Join(from, "modules.json"), `[{"path": "", "type": "Transformer"}]`)
			}
			task, run := trained(t, fromPublished(t, tt.kind, from, tt.tune))
			m := must.Get(Open(run))(t)
			if tt.kind == data.KindClassification {
				m.Mixture = mixture{Temperature: 1.5}
			}
			if tt.tune == "lora" {
				must.Fail(t, task.Export(filepath.Join(t.TempDir(), "new")), "still being trained")
			}
			before, dir := m.Params.Snapshot(), filepath.Join(t.TempDir(), "new")
			if err := m.Export(dir); err != nil || tt.want != "" {
				must.Fail(t, err, tt.want)
				return
			}
			for i, p := range m.Params.All() {
				if !slices.Equal(p.Value.Float32s(), before[i].Float32s()) {
					t.Errorf("Export changes %s", p.Name)
				}
			}
			again := must.Get(Open(dir))(t)
			if tt.kind == data.KindMaskedText { // opens as a model that embeds texts
				for _, p := range again.Params.All() {
					if q := m.Params.Get(p.Name); q == nil || !slices.Equal(p.Value.Float32s(), q.Value.Float32s()) {
						t.Errorf("%s differs from the run's", p.Name)
					}
				}
				return
			}
			inputs := []string{"a cat sees", "elephant"}
			if tt.kind == data.KindQA {
				inputs = []string{"a cat?\tso a cat sees an elephant", "dog\tthe dog runs " + strings.Repeat("a cat ", 30)}
			}
			want := must.Get(m.PredictAll(t.Context(), inputs, PredictOptions{}))(t)
			got := must.Get(again.PredictAll(t.Context(), inputs, PredictOptions{}))(t)
			for i, a := range want {
				b := got[i]
				if tt.kind == data.KindTagging { // without the unknown tag, the others are likelier
					b.LogProb, b.Spans = a.LogProb, a.Spans
				}
				if a.Number != nil && math.Abs(*a.Number-*b.Number) > 1e-4 || a.Number == nil && (a.Text != b.Text || math.Abs(a.LogProb-b.LogProb) > 1e-4) {
					t.Errorf("%q: the exported model answers %+v, the run %+v", inputs[i], b, a)
				}
			}
		})
	}
}
