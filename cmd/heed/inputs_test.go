package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// No command prints into a file that it reads, whatever path or link names the file and however it is opened.
func TestStdoutKeepsInputs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	path := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	rows, run, texts, text := path("rows.csv"), path("run"), path("texts"), path("text")
	write(t, rows, strings.Repeat("a,x\nb,y\nc,x\nd,y\n", 30))
	must.Do(t, os.MkdirAll(filepath.Join(texts, "more"), 0o777))
	for _, name := range []string{"a.txt", "more/b.txt"} {
		write(t, filepath.Join(texts, name), strings.Repeat("a line of text\n", 60))
	}
	small := func(flags ...string) []string { return small(append(flags, "--max-epochs=1")...) }
	learn := []string{"--task=classification", "--steps-per-epoch=0", "--validation=2", "--data=" + rows}
	windows := []string{"--task=text", "--max-len=8", "--data=" + texts}
	succeed(t, small(append(learn, "--out="+run)...)...)
	succeed(t, small(append(windows, "--out="+text)...)...)
	must.Do(t, os.Link(rows, path("hard")))
	must.Do(t, os.Symlink(rows, path("soft")))
	must.Do(t, os.Symlink(texts, path("folder")))

	const reads = "which this call reads: write to another file"
	inRun := func(name string) string { return filepath.Join(run, name) }
	for _, c := range []struct {
		stdout, input string // the file, and its name in the error
		args          []string
	}{
		{rows, rows, small(append(learn, "--out="+path("new"))...)},
		{rows, rows, small("--task=classification", "--steps-per-epoch=0", "--data="+path("soft"), "--validation-data="+rows, "--out="+path("new"))},
		{rows, rows, []string{"train", "--task=classification", "--data=" + rows, "--find-rate=" + path("rate.png")}},
		{rows, rows, []string{"train", "--resume=" + run, "--max-epochs=2"}},
		{inRun("history.jsonl"), inRun("history.jsonl"), []string{"train", "--resume=" + run, "--max-epochs=2"}},
		{inRun("model.safetensors"), inRun("model.safetensors"), small(append(learn, "--from="+run, "--out="+path("new"))...)},
		{filepath.Join(texts, "more", "b.txt"), filepath.Join(texts, "more", "b.txt"), small(append(windows, "--out="+path("new"))...)},
		{filepath.Join(texts, "log.txt"), filepath.Join(path("folder"), "log.txt"), small("--task=text", "--max-len=8", "--data="+path("folder"), "--out="+path("new"))},
		{filepath.Join(texts, "a.txt"), filepath.Join(texts, "a.txt"), []string{"report", text, "--out", path("page.html")}},
		{rows, rows, []string{"eval", run}},
		{rows, rows, []string{"eval", run, "--data", rows}},
		{rows, path("soft"), []string{"eval", run, "--data", path("soft")}},
		{rows, rows, []string{"eval", run, "--data", rows, "--answers", path("answers.tsv")}},
		{filepath.Join(texts, "a.txt"), filepath.Join(texts, "a.txt"), []string{"eval", text}},
		{rows, rows, []string{"predict", run, "--data", rows}},
		{rows, rows, []string{"predict", run, "--data", rows, "--json"}},
		{rows, path("hard"), []string{"predict", run, "--data", path("hard")}},
		{path("hard"), rows, []string{"predict", run, "--data", rows}},
		{path("soft"), rows, []string{"predict", run, "--data", rows}},
		{inRun("config.json"), inRun("config.json"), []string{"predict", run, "a"}},
		{inRun("config.json"), inRun("config.json"), []string{"attention", run, "a"}},
		{inRun("config.json"), inRun("config.json"), []string{"serve", run, "--addr=127.0.0.1:0"}},
		{inRun("tokenizer.json"), inRun("tokenizer.json"), []string{"tokenize", run, "a"}},
		{inRun("tokenizer.json"), inRun("tokenizer.json"), []string{"tokenize", inRun("tokenizer.json"), "a"}},
		{rows, rows, []string{"tokenize", run, "--count", path("texts", "a.txt"), rows}},
		{filepath.Join(text, "config.json"), filepath.Join(text, "config.json"), []string{"generate", text, "--prompt=a", "--tokens=3"}},
		{inRun("history.jsonl"), inRun("history.jsonl"), []string{"report", run, text, "--out", path("page.html")}},
	} {
		for name, mode := range map[string]int{">>": os.O_APPEND, "1<>": 0} {
			t.Run(strings.Join(c.args, " ")+" "+name+" "+c.stdout, func(t *testing.T) {
				f := must.Get(os.OpenFile(c.stdout, os.O_RDWR|os.O_CREATE|mode, 0o666))(t)
				defer f.Close()
				before := read(t, c.stdout)
				fail(t, heedTo(t.Context(), f, c.args...), 1, "standard output is "+c.input+", ", reads)
				if read(t, c.stdout) != before {
					t.Error("the input has changed, want it unchanged")
				}
			})
		}
	}
	absent(t, path("new"))

	// Standard input counts too, and only if it is read.
	for _, args := range [][]string{{"predict", run}, {"tokenize", run}, {"tokenize", run, "--ids"}, {"tokenize", run, "--count"}} {
		both := must.Get(os.OpenFile(rows, os.O_RDWR|os.O_APPEND, 0))(t)
		input := must.Get(os.Open(rows))(t)
		before := read(t, rows)
		cmd := process(args...)
		cmd.Stdin, cmd.Stdout = input, both
		fail(t, ended(cmd), 1, "standard input and standard output are the same file: write to another file")
		if read(t, rows) != before {
			t.Errorf("%q: the input has changed, want it unchanged", args)
		}
		must.Do(t, both.Close())
		must.Do(t, input.Close())
	}
	log := must.Get(os.Create(path("log")))(t)
	defer log.Close()
	for _, args := range [][]string{{"predict", run, "a"}, {"predict", run, "--data", rows}, {"eval", run}, {"tokenize", run, "--count", rows}} {
		if c := heedTo(t.Context(), log, args...); c.code != 0 {
			t.Errorf("%q into another file: status %d, %s", args, c.code, c.stderr)
		}
	}
}
