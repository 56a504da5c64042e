package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, run := range []string{"runs/a", "runs/b c", "other", ".hidden", "deep/er/still", "runs/new\nline"} {
		must.Do(t, os.MkdirAll(run, 0o777))
		write(t, filepath.Join(run, "config.json"), "{}")
	}
	os.Mkdir("runs/none", 0o777)
	const nothing, folders, endings = ":4", ":16", ":8" // cobra's codes for shells
	for _, test := range []struct {
		args string // the last argument is to be completed
		want []string
	}{
		{"predic", []string{"predict\tAnswer inputs with a trained model", nothing}},
		{"eval ", []string{"other", "runs/a", "runs/b c", nothing}},
		{"predict runs/", []string{"runs/a", "runs/b c", nothing}},
		{"serve .h", []string{".hidden", nothing}},
		{"generate deep/", []string{"deep/er/still", nothing}},
		{"attention de", []string{folders}},
		{"attention runs/a ", []string{nothing}},
		{"train --resume o", []string{"other", nothing}},
		{"train --from runs/b", []string{"runs/b c", nothing}},
		{"train --task ", append(described(task.Names()), nothing)},
		{"train --task text --preset ", []string{"nanogpt\ttext: nanoGPT's documented run on a CPU: a GPT-2 with 0.8 million parameters, 2,000 steps", "speedrun\ttext: a lower loss than nanogpt in less than a tenth of its time", nothing}},
		{"train --task seq2seq --preset ", []string{"small\tseq2seq: an encoder-decoder with 0.9 million parameters, 20 epochs", "base\tseq2seq: an encoder-decoder with 4.2 million parameters, 20 epochs", nothing}},
		{"train --units ", []string{"characters", "tokens", "words", "bpe", nothing}},
		{"train --target-units ", []string{"characters", "tokens", "bpe", nothing}},
		{"train --mode ", []string{"min", "max", nothing}},
		{"train --class-weights ", []string{"balanced", nothing}},
		{"train --data ", []string{"tsv", "csv", "jsonl", "conll", "conllu", "txt", endings}},
		{"train --out ", []string{folders}},
		{"train --find-rate=", []string{"png", endings}},
		{"train --dim ", []string{nothing}},
		{"predict x --out ", []string{"tsv", "csv", "jsonl", "conll", "conllu", endings}},
		{"eval x --out ", []string{"html", endings}},
		{"eval x --answers ", []string{"tsv", endings}},
		{"attention x y --out ", []string{"png", "svg", "html", endings}},
		{"report runs/a o", []string{"other", nothing}},
		{"report x --out ", []string{"html", endings}},
		{"sweep ru", []string{folders}},
		{"sweep x ", []string{nothing}},
		{"tokenize ru", []string{":0"}},
		{"tokenize runs/a ", []string{nothing}},
		{"tokenize --count runs/a ", []string{":0"}},
		{"bench ti", []string{"tiny", nothing}},
		{"bench --precision ", []string{"float32\tfloat32 factors", "bfloat16\tfactors of linear layers' products rounded to 8 significant bits; everything else in float32", nothing}},
		{"completion z", []string{"zsh", nothing}},
	} {
		t.Run(test.args, func(t *testing.T) {
			c := heed(append([]string{"__complete"}, strings.Split(test.args, " ")...)...)
			if want := strings.Join(test.want, "\n") + "\n"; c.code != 0 || c.stdout != want {
				t.Errorf("status %d, completions %q, want 0 and %q", c.code, c.stdout, want)
			}
		})
	}
	if out := heed("__complete", "help", "").stdout; !strings.HasPrefix(out, "attention\tShow what ") || !strings.Contains(out, "\nhelp\tExplain a command, or list the tasks\n") || !strings.HasSuffix(out, "\ntasks\tTasks, folders, and calls for them\n"+nothing+"\n") {
		t.Errorf("the completions of heed help are %q, want all commands", out)
	}
	tagging := must.Get(task.Named("tagging", 0))(t)
	tagging.Data.File = "x"
	known := judge.KindOf(&tagging.Config).Metrics
	for _, flag := range []string{"solver", "schedule", "monitor", "positions", "norm", "activation"} {
		var names []string
		for line := range strings.Lines(strings.Split(heed("__complete", "train", "--"+flag, "").stdout, "\n:")[0]) {
			name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			names = append(names, name)
		}
		names = slices.DeleteFunc(names, func(name string) bool { // values of other tasks
			_, metric, _ := strings.Cut(name, "_")
			return flag == "monitor" && metric != "loss" && !slices.ContainsFunc(known, func(m metrics.Metric) bool { return m.Name == metric })
		})
		fail(t, heed("train", "--task=tagging", "--data=x", "--"+flag+"=x"), 2, "--"+flag, strings.Join(names, ", "))
	}
	for _, shell := range shells {
		must.Have(t, succeed(t, "completion", shell), "__complete", "heed")
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		check := exec.Command(bash, "-n")
		check.Stdin = strings.NewReader(succeed(t, "completion", "bash"))
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("bash rejects its script: %v, %s", err, out)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		fail(t, heed(args...), 2, "heed completion takes one of bash, zsh, fish, powershell, got")
	}
}

// A call leaves no memory in use. The tests make thousands of calls in one process.
func TestCallsLeaveNothing(t *testing.T) {
	const calls = 50
	succeed(t, "version")
	before := memory.HeapInUse()
	for range calls {
		succeed(t, "version")
	}
	if grown := memory.HeapInUse() - before; grown > calls<<11 {
		t.Errorf("%d calls leave %d bytes, want at most %d", calls, grown, calls<<11)
	}
}

// Every command has examples, and no example is a wrong call. The test makes each call without its files, and
// interrupts it: its status must be 0 or 1.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	done, cancel := context.WithCancel(t.Context())
	cancel()
	var try func(cmd *cobra.Command)
	try = func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s has no examples", cmd.CommandPath())
		}
		must.Have(t, succeed(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...), "\n\nExamples:\n"+cmd.Example+"\n\n")
		for line := range strings.Lines(cmd.Example) {
			call := callOf(strings.NewReplacer("<(", " ", ")", " ").Replace(line))
			if call == nil || !strings.HasPrefix(strings.Join(append([]string{"heed"}, call...), " "), cmd.CommandPath()) {
				t.Errorf("the example %q isn't a call of %s", line, cmd.CommandPath())
			} else if c := heedContext(done, call...); c.code != 0 {
				fail(t, c, 1)
			}
		}
		for _, below := range cmd.Commands() {
			try(below)
		}
	}
	root := newRoot(nil)
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		try(cmd)
	}
	unchanged(t, ".", nil)
}
