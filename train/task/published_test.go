package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train"
)

// publishedFolder returns a copy of a folder of package pretrained, with a tokenizer of 41 ids: three special tokens
// and characters. The last ids have no characters.
func publishedFolder(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if strings.HasPrefix(name, "translators/") { // these have tokenizers
		must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
		return dir
	}
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("../../layers/pretrained/testdata", name))))
	vocab, added := map[string]int{}, []any{}
	for id, special := range []string{"<unk>", "<s>", "</s>", "<mask>"} {
		vocab[special] = id
		added = append(added, map[string]any{"id": id, "content": special, "special": true})
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyz .?|<>_\n" {
		vocab[string(c)] = len(vocab)
	}
	content, err := json.Marshal(map[string]any{
		"version": "1.0", "decoder": map[string]any{"type": "Fuse"}, "added_tokens": added,
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}, "unk_token": "<unk>"},
	})
	must.Do(t, err)
	write(t, filepath.Join(dir, "tokenizer.json"), string(content))
	return dir
}

func openedFolder(t *testing.T, name string) *Model {
	t.Helper()
	m := must.Get(Open(publishedFolder(t, name)))(t)
	return m
}

// A published text model must write what its weights say, end at its end tokens, draw only ids of its tokenizer, and
// refuse to exceed its context.
func TestPublishedText(t *testing.T) {
	m := openedFolder(t, "llama")
	write := func(p Prompt, o GenerateOptions) (string, Generated) {
		t.Helper()
		var s strings.Builder
		g := must.Get(m.Generate(t.Context(), &s, p, o))(t)
		return s.String(), g
	}
	greedy, g := write(Prompt{Text: "abc"}, GenerateOptions{Sampler: m.Sampler(), MaxTokens: 5})
	if g.PromptTokens != 3 || g.Finish != "stop" && g.Tokens != 5 {
		t.Errorf("a prompt of 3 characters gives %+v", g)
	}
	for text := "abc"; greedy != "" && g.Finish == "length"; greedy = greedy[1:] { // each token is a character
		next, err := m.Predict(text)
		if err != nil || next != greedy[:1] {
			t.Errorf("Predict after %q gives %q, %v, Generate gives %q", text, next, err, greedy)
		}
		text += greedy[:1]
	}
	if _, g = write(Prompt{}, GenerateOptions{}); g.PromptTokens != 1 || g.Finish == "length" && g.Tokens != 31 {
		t.Errorf("an empty prompt gives %+v, want a prompt of the first token, and at most 31 tokens", g)
	}
	for seed := range uint64(20) { // hot: all ids are about equally likely
		o := GenerateOptions{MaxTokens: 20, Seed: seed}
		o.Sampler.Temperature = 100
		if text, g := write(Prompt{Text: "a"}, o); strings.Contains(text, "<s>") || strings.Contains(text, "</s>") || g.Finish == "stop" && g.Tokens == 20 {
			t.Errorf("seed %d gives %q, %+v", seed, text, g)
		}
	}
	for _, test := range []struct {
		p    Prompt
		o    GenerateOptions
		want string
	}{
		{Prompt{Text: strings.Repeat("a", 33)}, GenerateOptions{}, "33 tokens, but the model reads at most 32 (max_position_embeddings)"},
		{Prompt{Text: strings.Repeat("a", 32)}, GenerateOptions{}, "the prompt has 32 tokens, and the model reads and writes at most 32"},
		{Prompt{Text: "abc"}, GenerateOptions{MaxTokens: 30}, "ask for at most 29 tokens"},
		{Prompt{Text: "a", Messages: []tokenizer.Message{{Role: "user", Content: "b"}}}, GenerateOptions{}, "can't come with another text"},
		{Prompt{Messages: []tokenizer.Message{{Role: "user", Content: "b"}}}, GenerateOptions{}, "a template can be chosen by name: chatml, gemma, "},
		{Prompt{Messages: []tokenizer.Message{{Role: "user", Content: "b"}}, Template: "none"}, GenerateOptions{}, "choose one by name, chatml, gemma, "},
	} {
		var s strings.Builder
		_, err := m.Generate(t.Context(), &s, test.p, test.o)
		if must.Fail(t, err, test.want); !errors.As(err, new(*InputError)) || s.Len() > 0 {
			t.Errorf("%+v: got error %v and %q written, want an *InputError and nothing", test.p, err, s.String())
		}
	}
}

// A classifier must answer with the labels of config.json, as the model's own logits say.
func TestPublishedClassifier(t *testing.T) {
	dir := publishedFolder(t, "llama-classes")
	m := must.Get(Open(dir))(t)
	reference := must.Get(pretrained.Open(dir, tensor.Float32))(t)
	if m.Config.Task.Kind != data.KindClassification || !slices.Equal(m.Config.Task.Classes, []string{"bad", "so so", "good"}) {
		t.Errorf("the kind is %s with the labels %q", m.Config.Task.Kind, m.Config.Task.Classes)
	}
	answers := must.Get(m.PredictAll(t.Context(), []string{"a text", "another one", strings.Repeat("x", 40)}, PredictOptions{Top: 3}))(t)
	for _, a := range answers {
		ids := must.Get(m.Config.Task.Source.Encode(a.Input))(t)
		if a.Cut != (len(ids) > 32) {
			t.Errorf("%q: cut is %v", a.Input, a.Cut)
		}
		ids = ids[:min(len(ids), 32)]
		logits := outputOf(t, len(ids), func(b *layers.Build, x *G.Node) (*G.Node, error) {
			return reference.Classifier.Forward(b, x, layers.Mask{})
		}, ids)
		best, logProb := logit.Likeliest(logits)
		if a.Text != m.Config.Task.Classes[best] || math.Abs(a.LogProb-logProb) > 1e-5 || len(a.Top) != 3 {
			t.Errorf("%q: got %+v, want %s with log probability %g", a.Input, a, m.Config.Task.Classes[best], logProb)
		}
	}
	must.Do(t, os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "model.fp16.safetensors")))
	if _, err := Open(dir); err != nil {
		t.Errorf("the only safetensors file has another name: %v", err)
	}
	path := filepath.Join(dir, "config.json")
	write(t, path, strings.Replace(read(t, path), "{", `{"problem_type": "regression",`, 1))
	if _, err := Open(dir); !errors.As(err, new(*pretrained.UnsupportedError)) || !strings.Contains(err.Error(), "problem_type") {
		t.Errorf("several numbers per text: got error %v", err)
	}
	if _, _, err := m.Embed(t.Context(), []string{"a"}); !errors.As(err, new(*InputError)) {
		t.Errorf("Embed with a classifier: got error %v", err)
	}
}

// outputOf returns the output of a model for one sequence.
func outputOf(t *testing.T, length int, forward func(b *layers.Build, x *G.Node) (*G.Node, error), ids []int) []float32 {
	t.Helper()
	f, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		x := G.NewTensor(g, tensor.Int, 2, G.WithShape(1, length), G.WithName("ids"))
		y, err := forward(b, x)
		return G.Nodes{x}, G.Nodes{y}, err
	})
	must.Do(t, err)
	out := must.Get(f.Call(ops.IntTensor(ids, 1, length)))(t)
	return out[0].Float32s()
}

// Embeddings must be the pooled states, whatever other texts are embedded at the same time.
func TestEmbed(t *testing.T) {
	dir := publishedFolder(t, "llama-states")
	for name, content := range map[string]string{
		"modules.json": `[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}, {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
			{"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`,
		"config_sentence_transformers.json": `{"prompts": {"query": "q. "}, "default_prompt_name": "query"}`,
		"sentence_bert_config.json":         `{"max_seq_length": 12}`,
		"1_Pooling/config.json":             `{"word_embedding_dimension": 16, "pooling_mode_mean_tokens": true}`,
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		write(t, filepath.Join(dir, name), content)
	}
	m := must.Get(Open(dir))(t)
	reference := must.Get(pretrained.Open(dir, tensor.Float32))(t)
	texts := []string{"b", "", "a longer text that is cut", "abc", "b"}
	vectors, tokens, err := m.Embed(t.Context(), texts)
	if err != nil || tokens != 4+3+12+6+4 || len(vectors) != len(texts) {
		t.Fatalf("Embed reads %d tokens and gives %d vectors, %v", tokens, len(vectors), err)
	}
	for i, text := range texts {
		ids, _ := m.Config.Task.Source.Encode("q. " + text)
		ids = ids[:min(len(ids), 12)]
		states := outputOf(t, len(ids), func(b *layers.Build, x *G.Node) (*G.Node, error) {
			return reference.Encoder.Forward(b, x, layers.Mask{})
		}, ids)
		want, squares := make([]float64, 16), 0.0
		for j, x := range states {
			want[j%16] += float64(x)
		}
		for _, x := range want {
			squares += x * x
		}
		for j, x := range vectors[i] {
			if math.Abs(float64(x)-want[j]/math.Sqrt(squares)) > 1e-5 {
				t.Errorf("%q: dimension %d is %g, want %g", text, j, x, want[j]/math.Sqrt(squares))
			}
		}
	}
	must.Refuse(m.PredictAll(t.Context(), nil, PredictOptions{}))(t, "heed embed")
	if a, err := m.Attention("abc", ""); err != nil || len(a.Layers) != 2 || len(a.Layers[0].Rows) != 3 {
		t.Errorf("Attention gives %+v, %v", a, err)
	}
}

// OpenFS must open a published folder within a file system.
func TestPublishedFS(t *testing.T) {
	m, err := OpenFS(os.DirFS(publishedFolder(t, "llama")))
	if err != nil || m.Config.Task.Source == nil {
		t.Fatalf("OpenFS gives %v, %v", m, err)
	}
}

// ScoreText must predict each token after the first once, from the tokens before it in its window.
func TestScoreText(t *testing.T) {
	dir := publishedFolder(t, "llama")
	m := must.Get(Open(dir))(t)
	reference := must.Get(pretrained.Open(dir, tensor.Float32))(t)
	const text = "the windows of a text overlap, so that each of its tokens has some before it."
	path := filepath.Join(t.TempDir(), "text.txt")
	write(t, path, text)
	ids := must.Get(m.Config.Task.Source.Encode(text))(t)
	for _, o := range []WindowOptions{{}, {Window: 32, Stride: 31}, {Window: 7, Stride: 2}, {Window: 2}} {
		window, stride := cmp.Or(o.Window, 32), cmp.Or(o.Stride, max(1, cmp.Or(o.Window, 32)/2))
		want, done := 0.0, 1
		for start := 0; done < len(ids); start += stride {
			part := ids[start:min(start+window, len(ids))]
			logits := outputOf(t, len(part), func(b *layers.Build, x *G.Node) (*G.Node, error) {
				return reference.Decoder.Forward(b, x, layers.Mask{})
			}, part)
			for i := done - start; i < len(part); i++ {
				row := logits[(i-1)*41:][:41]
				best, logProb := logit.Likeliest(row)
				want -= logProb + float64(row[part[i]]-row[best])
			}
			done = start + len(part)
		}
		s, err := m.ScoreText(t.Context(), data.TextFiles{Paths: []string{path}}, o)
		if want /= float64(len(ids) - 1); err != nil || math.Abs(s.Loss-want) > 1e-5 || s.Tokens != len(ids)-1 || s.Bytes != len(text) {
			t.Errorf("%+v: got %+v, %v, want a loss of %g", o, s, err, want)
		}
	}
	write(t, path, "a")
	must.Refuse(m.ScoreText(t.Context(), data.TextFiles{Paths: []string{path}}, WindowOptions{}))(t, "too few to predict one")
}

// Every architecture of package pretrained must open with its tokenizer, answer and show its attention.
func TestEveryArchitecture(t *testing.T) {
	testseed.Slow(t)
	entries := must.Get(os.ReadDir("../../layers/pretrained/testdata"))(t)
	kinds := map[data.Kind]int{}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		m := openedFolder(t, e.Name())
		d := m.Config.Describe()
		kinds[m.Config.Task.Kind]++
		if testseed.LeftOut(e.Name()) {
			continue
		}
		inputs, part := []string{"abc", "a longer text"}, ""
		switch m.Config.Task.Kind {
		case data.KindQA:
			inputs = []string{"abc\ta longer text", "a\tb"}
		case data.KindSeq2Seq: // an answer may be so long that all weights are too many
			part = "decoder.blocks.0.cross"
		}
		var err error
		switch {
		case d.Generate == nil:
			_, err = m.Generate(t.Context(), io.Discard, Prompt{Text: "abc"}, GenerateOptions{MaxTokens: 3, Sampler: m.Sampler()})
		case d.Predict != nil:
			_, _, err = m.Embed(t.Context(), []string{"abc", "a longer text"})
		default:
			_, err = m.PredictAll(t.Context(), inputs, PredictOptions{})
		}
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		if _, err := m.Attention(inputs[0], part); err != nil {
			t.Errorf("%s: Attention: %v", e.Name(), err)
		}
	}
	if kinds[data.KindText] < 10 || kinds[data.KindClassification] < 1 || kinds[data.KindTagging] < 10 || kinds[data.KindQA] < 5 || kinds[data.KindSeq2Seq] < 6 || kinds[data.KindEmbed] < 1 {
		t.Errorf("the kinds are %v, want texts, classes, tags, answers, sequences and vectors", kinds)
	}
}

// A causal classifier reads the last token that isn't padding, also where the tokenizer ends each text with the id of
// padding: the answers and what the words did to them are then those without this token. A run that begins from the
// model, and its export, read the same token.
func TestClassifierReadsBeforePadding(t *testing.T) {
	t.Parallel()
	plain, ended := publishedFolder(t, "gpt2-classes"), publishedFolder(t, "gpt2-classes") // padding has the id 2
	path := filepath.Join(ended, "tokenizer.json")
	const end = `{"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
		"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
		"special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},`
	write(t, path, strings.Replace(read(t, path), "{", end, 1))
	opened := func(dir string) *Model {
		t.Helper()
		m := must.Get(Open(dir))(t)
		return m
	}
	wantSame := func(got, want *Model, explained bool) {
		t.Helper()
		for _, input := range []string{"abc", "a longer text", "."} {
			b := must.Get(got.Coder.Batch([]data.Example{{Source: input}}))(t)
			if n := b.Lengths[0]; b.Inputs[n-1] != 2 {
				t.Errorf("%q: the ids are %d, want 2 as the last", input, b.Inputs[:n])
			}
			options := PredictOptions{Top: 2}
			x := must.Get(got.PredictAll(t.Context(), []string{input}, options))(t)
			y := must.Get(want.PredictAll(t.Context(), []string{input}, options))(t)
			if x[0].Text != y[0].Text || math.Abs(x[0].LogProb-y[0].LogProb) > 1e-5 {
				t.Errorf("%q: got %s with %g, want %s with %g", input, x[0].Text, x[0].LogProb, y[0].Text, y[0].LogProb)
			}
			if !explained {
				continue
			}
			one, err1 := got.Explain(input, x[0].Text, "")
			other, err2 := want.Explain(input, x[0].Text, "")
			if err1 != nil || err2 != nil || len(one) != len(other) || math.Abs(one[0].Value-other[0].Value) > 1e-5 {
				t.Errorf("%q: explained as %+v, %v, want %+v, %v", input, one, err1, other, err2)
			}
		}
	}
	wantSame(opened(ended), opened(plain), true)

	task := made(t, fromPublished(t, data.KindClassification, ended, "head"))
	dir, exported := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "exported")
	run(t, task, dir, train.RunOptions{})
	m := opened(dir)
	if pad := m.Config.Head.Pad; pad == nil || *pad != 2 {
		t.Errorf("the run has the head %+v, want the padding 2", m.Config.Head)
	}
	must.Do(t, m.Export(exported))
	wantSame(opened(exported), m, false) // its logits are divided by the run's temperature
}

// What generation_config.json bars isn't written, whoever asks.
func TestBarredTokens(t *testing.T) {
	dir := publishedFolder(t, "llama")
	text := func(generation string) string {
		t.Helper()
		write(t, filepath.Join(dir, "generation_config.json"), generation)
		m := must.Get(Open(dir))(t)
		var s strings.Builder
		must.Get(m.Generate(t.Context(), &s, Prompt{Text: "abc"}, GenerateOptions{Sampler: m.Sampler(), MaxTokens: 9}))(t)
		return s.String()
	}
	id := func(c byte) int { return 4 + strings.IndexByte("abcdefghijklmnopqrstuvwxyz .?|<>_\n", c) }
	free := text(`{}`)
	first := free[0]
	if got := text(fmt.Sprintf(`{"suppress_tokens": [%d]}`, id(first))); strings.IndexByte(got, first) >= 0 {
		t.Errorf("%q has a suppressed %q", got, first)
	}
	if got := text(fmt.Sprintf(`{"begin_suppress_tokens": [%d]}`, id(first))); got == "" || got[0] == first {
		t.Errorf("%q begins with a suppressed %q", got, first)
	}
	n := strings.IndexFunc(free, func(c rune) bool { return c != rune(first) }) // the character that ends the text now
	for _, test := range []struct {
		members string
		want    int // the least number of characters
	}{
		{"", n},
		{fmt.Sprintf(`, "min_new_tokens": %d`, n+1), n + 1},
		{fmt.Sprintf(`, "min_length": %d`, len("abc")+n+1), n + 1},
		{`, "min_length": 9, "min_new_tokens": 0`, n},
	} {
		got := text(fmt.Sprintf(`{"eos_token_id": %d%s}`, id(free[n]), test.members))
		if test.want == n && got != free[:n] || len(got) < test.want {
			t.Errorf("with %q, got %q, want at least %d characters of %q", test.members, got, test.want, free)
		}
	}
}
