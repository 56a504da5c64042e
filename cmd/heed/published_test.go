package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/llama2c"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train/model"
)

// publishedFolder returns a copy of a folder of package pretrained, with a tokenizer whose tokens are characters.
func publishedFolder(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("../../layers/pretrained/testdata", name))))
	vocab := map[string]int{}
	for _, c := range []string{"<unk>", "<s>", "</s>"} {
		vocab[c] = len(vocab)
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyz .?|<>_\n" {
		vocab[string(c)] = len(vocab)
	}
	vocab["<mask>"] = len(vocab)
	content, err := json.Marshal(map[string]any{
		"version": "1.0", "decoder": map[string]any{"type": "Fuse"},
		"added_tokens": []any{map[string]any{"id": 1, "content": "<s>", "special": true}, map[string]any{"id": 2, "content": "</s>", "special": true}, map[string]any{"id": len(vocab) - 1, "content": "<mask>", "special": true}},
		"model":        map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}, "unk_token": "<unk>"},
	})
	must.Do(t, err)
	write(t, filepath.Join(dir, "tokenizer.json"), string(content))
	return dir
}

// A run of masked text that began as a published model fills masks, embeds texts, and is scored on its validation set
// and on another text.
func TestPublishedMasks(t *testing.T) {
	folder, run := publishedFolder(t, "roberta-mask"), filepath.Join(t.TempDir(), "run")
	out := succeed(t, "train", "--task=mlm", "--from="+folder, "--data="+foxText(t), "--max-len=12", "--batch-size=4", "--steps-per-epoch=4", "--max-epochs=1", "--tune=lora", "--out="+run)
	if out := succeed(t, "predict", run, "the quick <mask>rown"); !strings.HasPrefix(out, "the quick ") || strings.Contains(out, "<mask>") {
		t.Errorf("predict prints %q, want the input without its mask", out)
	}
	score := succeed(t, "eval", run)
	must.Have(t, out, score)
	must.Have(t, score, "masked tokens predicted")
	succeed(t, "eval", run, "--data="+foxText(t))
	begins(t, succeed(t, "embed", run, "the fox"), "[")
}

// What isn't a model has an error that says what it is, and what to do.
func TestWhatIsNoModel(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	place := func(name string, files ...string) string {
		dir := filepath.Join(base, name)
		must.Do(t, os.MkdirAll(dir, 0o777))
		for i := 0; i < len(files); i += 2 {
			write(t, filepath.Join(dir, files[i]), files[i+1])
		}
		return dir
	}
	gguf := filepath.Join(place("gguf", "model.gguf", "GGUF\x03\x00\x00\x00"), "model.gguf")
	place("mails")
	embeds := publishedFolder(t, "bert-states")
	headless := publishedFolder(t, "qwen2")
	tensors, metadata, err := safetensors.ReadFile(filepath.Join(headless, "model.safetensors"))
	must.Do(t, err)
	var content strings.Builder
	must.Do(t, safetensors.Write(&content, slices.DeleteFunc(tensors, func(x safetensors.Tensor) bool { return x.Name == "lm_head.weight" }), metadata))
	write(t, filepath.Join(headless, "model.safetensors"), content.String())
	labels := publishedFolder(t, "bert-classes")
	config := filepath.Join(labels, "config.json")
	for _, test := range []struct {
		call []string
		code int
		want string
	}{
		{[]string{"predict", filepath.Join(base, "mail"), "x"}, 1, "there is no such folder; did you mean " + filepath.Join(base, "mails") + "?"},
		{[]string{"chat", filepath.Join(base, "nothing-like-it")}, 1, "there is no such folder\n"},
		{[]string{"train", "--resume=" + filepath.Join(base, "mailz")}, 1, "there is no such folder; did you mean"},
		{[]string{"generate", gguf}, 1, "a file with a model as GGUF, which Heed doesn't read"},
		{[]string{"embed", filepath.Dir(gguf), "x"}, 1, "has a model as GGUF, model.gguf, which Heed doesn't read"},
		{[]string{"predict", config, "x"}, 1, "isn't a folder, but a file: give the folder of a model"},
		{[]string{"chat", embeds}, 2, "use heed embed"},
		{[]string{"generate", headless}, 1, `"lm_head.weight"`},
		{[]string{"predict", place("bom", "config.json", "\ufeff{}"), "x"}, 1, "byte-order mark"},
		{[]string{"predict", place("infinity", "config.json", `{"model_type": "bert", "x": Infinity}`), "x"}, 1, "the number Infinity, which JSON lacks"},
	} {
		fail(t, heed(test.call...), test.code, test.want)
	}
	write(t, config, strings.Replace(read(t, config), `"0": "no"`, `"0": 7`, 1)) // the reference library takes numbers, too
	must.Have(t, succeed(t, "predict", labels, "abc", "--top=3"), "7")
}

// The published greedy output of stories260K comes from the command and from Go, word for word. The test skips where
// the files aren't there.
func TestStories260K(t *testing.T) {
	source := "../../../shared/data/stories260K"
	want, err := os.ReadFile(filepath.Join(source, "greedy.txt"))
	if err != nil {
		t.Skip(err)
	}
	weights := must.Get(os.Open(filepath.Join(source, "stories260K.bin")))(t)
	defer weights.Close()
	tokens := must.Get(os.Open(filepath.Join(source, "tok512.model")))(t)
	defer tokens.Close()
	dir := t.TempDir()
	must.Do(t, llama2c.Convert(weights, tokens, dir))
	prints(t, string(want), "generate", dir, "--tokens=256", "--temperature=0")
	begins(t, succeed(t, "generate", dir, "--tokens=256", "--temperature=0", "--weights=int8"), string(want[:150]))
	m := must.Get(model.Open(dir))(t)
	var s strings.Builder
	g, err := m.Generate(t.Context(), &s, model.Prompt{}, model.GenerateOptions{MaxTokens: 256})
	if err != nil || s.String() != strings.TrimSuffix(string(want), "\n") || g.PromptTokens != 1 {
		t.Errorf("Generate writes %q, %+v, %v, want %q", s.String(), g, err, want)
	}
}

// Each command works on the folder of a published text model, or says why not.
func TestPublishedText(t *testing.T) {
	dir := publishedFolder(t, "llama")
	first := succeed(t, "generate", dir, "--prompt=abc", "--tokens=9")
	if !strings.HasPrefix(first, "abc") || first != succeed(t, "generate", dir, "--prompt=abc", "--tokens=9", "--temperature=0") {
		t.Errorf("generate writes %q, and something else at temperature 0", first)
	}
	hot := []string{"generate", dir, "--prompt=abc", "--tokens=9", "--min-p=0.01", "--repetition-penalty=1.1", "--presence-penalty=0.5", "--frequency-penalty=0.5"}
	if succeed(t, hot...) == first {
		t.Error("--min-p draws no tokens")
	}
	stop := first[4:5]
	prints(t, "abc"+strings.SplitN(first[3:], stop, 2)[0]+"\n", "generate", dir, "--prompt=abc", "--tokens=9", "--stop", stop)
	chat := succeed(t, "generate", dir, "--prompt=a", "--chat", "--template=llama2", "--tokens=3")
	withText(t, "a\n\n")
	prints(t, chat, "chat", dir, "--template=llama2", "--tokens=3")
	withText(t, "a\n\n")
	prints(t, succeed(t, "generate", dir, "--prompt=a", "--chat", "--template=llama2", "--tokens=3", "--weights=int8"), "chat", dir, "--template=llama2", "--tokens=3", "--weights=int8")
	text := newFile(t, "text.txt", strings.Repeat("a text of some length. ", 4))
	if got := succeed(t, "eval", dir, "--data", text); !strings.HasPrefix(got, "Loss=") || !strings.Contains(got, "(91 tokens, 92 bytes)") {
		t.Errorf("eval writes %q", got)
	}
	var scores struct {
		Loss, Perplexity, BitsPerByte float64
	}
	must.Do(t, json.Unmarshal([]byte(succeed(t, "eval", dir, "--data", text, "--json", "--window=8", "--stride=3")), &scores))
	if math.Abs(scores.Perplexity-math.Exp(scores.Loss)) > 1e-6*scores.Perplexity || scores.Loss == 0 {
		t.Errorf("eval --json has %+v", scores)
	}
	if got := succeed(t, "predict", dir, "abc"); len(got) < 2 {
		t.Errorf("predict answers %q", got)
	}
	must.Have(t, succeed(t, "attention", dir, "abc", "--layer=blocks.0"), "blocks.0.attention")
	prints(t, "3 4\n", "tokenize", dir, "ab", "--ids")
	for args, want := range map[string]string{
		"generate DIR --prompt=a --system=b":         "--system needs --chat",
		"generate DIR --prompt=a --chat":             "a template can be chosen by name: chatml, gemma, ",
		"generate DIR --prompt=a --tokens=40":        "max_position_embeddings",
		"generate DIR --prompt=a --weights=int4":     "--weights: there is no kind of weights \"int4\": use one of float32, int8",
		"generate DIR --prompt=a --stop=":            "--stop must be a text at which to end",
		"eval DIR":                                   "without validation data: give --data",
		"eval DIR --data TEXT --window=33":           "--window must be from 2 to 32, got 33",
		"eval DIR --data TEXT --window=8 --stride=9": "--stride must be from 1 to 7, got 9",
		"embed DIR a":                                "only models of kind embed or mlm embed texts",
	} {
		rejected(t, heed(strings.Fields(strings.NewReplacer("DIR", dir, "TEXT", text).Replace(args))...), 2, want)
	}
	fail(t, heed("report", dir), 1, "is a published model, not a run")
	fail(t, heed("train", "--resume", dir), 1, "a published model learns from a file: set data.file")
	rejected(t, heed("chat", ran(t, "--task=copy")), 2, "heed chat needs a published model")
}

// heed predict and heed eval answer with the labels of a published classifier.
func TestPublishedClassifier(t *testing.T) {
	dir := publishedFolder(t, "llama-classes")
	answer := strings.TrimSuffix(succeed(t, "predict", dir, "a text"), "\n")
	if answer != "bad" && answer != "so so" && answer != "good" {
		t.Errorf("predict answers %q", answer)
	}
	rows := newFile(t, "rows.csv", "text,label\na text,"+answer+"\n")
	must.Have(t, succeed(t, "eval", dir, "--data", rows), "Accuracy: 1.0000 (1 of 1")
	page := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "eval", dir, "--data", rows, "--out", page)
	must.Have(t, read(t, page), "a text")
	two := newFile(t, "two.csv", "premise,claim,label\na text,another,good\n")
	pair := strings.TrimSuffix(succeed(t, "predict", dir, "a text\tanother"), "\n")
	if got := succeed(t, "predict", dir, "--data", two, "--columns=premise,claim"); !strings.HasSuffix(got, "good,"+pair+"\n") {
		t.Errorf("predict answers the pair with %q, its row with %q", pair, got)
	}
	must.Have(t, succeed(t, "eval", dir, "--data", two, "--columns=premise,claim,label"), "Accuracy")
	prints(t, "text,label,answer\na text,"+answer+","+answer+"\n", "predict", dir, "--data", rows)
	write(t, filepath.Join(dir, "tokenizer_config.json"), `{"model_max_length": 8, "truncation_side": "left"}`)
	end, other := heed("predict", dir, "xyz abcdefgh"), heed("predict", dir, "zyxw abcdefgh")
	for _, c := range []called{end, other, heed("attention", dir, "xyz abcdefgh")} {
		if !strings.HasSuffix(c.stderr, "longer than the model's 8 symbols; the beginning was ignored\n") || end.stdout != other.stdout {
			t.Errorf("a tokenizer that cuts on the left: %q, answers %q and %q", c.stderr, end.stdout, other.stdout)
		}
	}
}

// heed embed writes the same vectors in all forms.
func TestEmbed(t *testing.T) {
	dir, out := publishedFolder(t, "llama-states"), t.TempDir()
	rows := filepath.Join(out, "rows.csv")
	write(t, rows, "name,body\nx,first text\ny,second\n")
	printed := succeed(t, "embed", dir, "first text", "second")
	var want [2][]float32
	for i, line := range strings.Split(strings.TrimSuffix(printed, "\n"), "\n") {
		must.Do(t, json.Unmarshal([]byte(line), &want[i]))
	}
	withText(t, "first text\nsecond\n")
	prints(t, printed, "embed", dir)
	for _, form := range []string{".npy", ".csv", ".jsonl"} {
		path := filepath.Join(out, "vectors"+form)
		succeed(t, "embed", dir, "--data", rows, "--column=body", "--out", path)
		content := read(t, path)
		switch form {
		case ".npy":
			size := 10 + int(binary.LittleEndian.Uint16([]byte(content[8:])))
			if head := content[:size]; size%64 != 0 || !strings.HasPrefix(head, "\x93NUMPY\x01\x00") || !strings.Contains(head, "'<f4'") || !strings.Contains(head, "(2, 16)") || len(content) != size+2*16*4 {
				t.Fatalf("%d bytes with the header %q", len(content), head)
			}
			for i := range 32 {
				if x := math.Float32frombits(binary.LittleEndian.Uint32([]byte(content[size+4*i:]))); x != want[i/16][i%16] {
					t.Errorf("number %d is %g, want %g", i, x, want[i/16][i%16])
				}
			}
		case ".csv":
			if strings.NewReplacer("[", "", "]", "").Replace(printed) != content {
				t.Errorf("%s: %q", form, content)
			}
		case ".jsonl":
			begins(t, content, `{"text":"first text","embedding":`+strings.Split(printed, "\n")[0]+"}\n")
		}
	}
	apart := t.TempDir() // the model in a folder of its own
	must.Do(t, os.Rename(dir, filepath.Join(apart, "0_Transformer")))
	write(t, filepath.Join(apart, "modules.json"), `[{"idx": 0, "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]`)
	dir = apart
	prints(t, printed, "embed", dir, "first text", "second")
	prints(t, "3 4\n", "tokenize", dir, "ab", "--ids")
	wide := newFile(t, "wide.csv", "id,title,body\n1,a,b\n")
	for _, call := range []string{"embed " + dir, "search " + dir + " a", "rank " + pairModels + "bert-cross a"} {
		rejected(t, heed(append(strings.Fields(call), "--data", wide)...), 2, "choose the text, as in --column body if")
	}
	for args, want := range map[string]string{
		"predict DIR a":                   "has no answers: use heed embed, or heed search to find the rows of a file; if the model has a head, architectures in its config.json must name it",
		"embed DIR a --data ROWS":         "as arguments or with --data, not both",
		"embed DIR a --column=body":       "--column needs --data",
		"embed DIR a --out=x.txt":         "--out must be a file's name that ends in .npy, .csv or .jsonl",
		"embed DIR a --prompt-name=query": "--prompt-name is for models with prompts, and this one has none",
		"generate DIR --prompt=a":         "only text models generate text",
	} {
		rejected(t, heed(strings.Fields(strings.NewReplacer("DIR", dir, "ROWS", rows).Replace(args))...), 2, want)
	}
}

// A run that trains a part of a published model says so, and opens with --base after that model has moved.
func TestFineTuned(t *testing.T) {
	t.Parallel()
	base, dir := publishedFolder(t, "bert"), filepath.Join(t.TempDir(), "run")
	rows := newFile(t, "rows.tsv", "text\tlabel\n"+lines(40, func(i int) string {
		return fmt.Sprintf("%s\t%c", strings.Repeat("ab", i+1)[:i%20+1]+"xy"[i/20:][:1], "xy"[i/20])
	}))
	must.Have(t, succeed(t, "train", "--task=classification", "--data="+rows, "--from="+base, "--tune=lora", "--rank=2", "--max-epochs=1", "--out="+dir),
		"tuned: a low-rank adapter of rank 2, and the head (", "Training classification: ", " trained, seed 1")
	moved := filepath.Join(t.TempDir(), "moved")
	must.Do(t, os.Rename(base, moved))
	for _, call := range [][]string{{"predict", dir, "abc"}, {"eval", dir}, {"train", "--resume=" + dir, "--max-epochs=2"}} {
		fail(t, heed(call...), 1, base, "if that model has moved, say where it is with --base")
		succeed(t, append(call, "--base="+moved)...)
	}
	fail(t, heed("predict", moved, "--base="+moved, "abc"), 1, "has all weights of its model: leave out the base")
	fail(t, heed("train", "--base="+moved), 2, "--base need --from, the folder")
}

// Flags of epochs can't be given for a head that is solved, neither at the start nor later.
func TestSolvedWithoutEpochs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	rows := newFile(t, "rows.tsv", "text\tlabel\n"+lines(40, func(i int) string { return fmt.Sprintf("%s\t%c", strings.Repeat("ab", i%9+1), "xy"[i%2]) }))
	call := []string{"train", "--task=classification", "--data=" + rows, "--from=" + publishedFolder(t, "bert"), "--tune=head", "--out=" + dir}
	rejected(t, heed(append(call, "--max-epochs=3", "--learning-rate=0.1", "--dropout=0.2")...), 2, "without epochs: leave out --dropout, --learning-rate, --max-epochs, or choose another --tune")
	if out := succeed(t, append(call, "--monitor=val_f1[x]")...); strings.Contains(out, "per epoch") {
		t.Errorf("the training has no epochs, but heed prints %s", out)
	}
	rejected(t, heed("train", "--resume="+dir, "--patience=3"), 2, "leave out --patience")
}

// A published model for tags answers with entities, by the rule of --entities.
func TestEntities(t *testing.T) {
	const folder = "../../train/model/testdata/entities/pieces"
	for rule, want := range map[string]string{"words": `"label":"PER"`, "simple": `"label":"PER"`, "none": `"label":"B-PER"`} {
		got := heed("predict", folder, "--json", "--entities", rule, "Ann Lee lives in Oslo")
		if got.code != 0 || !strings.Contains(got.stdout, want) || !strings.Contains(got.stdout, `"score":0.`) {
			t.Errorf("%s: got %+v", rule, got)
		}
	}
	must.Have(t, succeed(t, "eval", folder, "--data", newFile(t, "tags.jsonl", `{"tokens": ["Ann", "lives"], "tags": ["B-PER", "O"]}`+"\n")), " of 2 tags right")
	if got := heed("predict", folder, "--entities", "frist", "Ann"); got.code != 2 || !strings.Contains(got.stderr, "did you mean first?") {
		t.Errorf("got %+v", got)
	}
}
