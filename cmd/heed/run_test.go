package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// readRun returns a run's summary and history.
func readRun(t *testing.T, dir string) (task.Summary, []train.Check) {
	t.Helper()
	var s task.Summary
	d := json.NewDecoder(strings.NewReader(read(t, filepath.Join(dir, runfolder.SummaryFile))))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&s))
	return s, readHistory(t, dir)
}

func readHistory(t *testing.T, dir string) []train.Check {
	t.Helper()
	var history []train.Check
	for line := range strings.Lines(read(t, filepath.Join(dir, runfolder.HistoryFile))) {
		var e train.Check
		must.Do(t, json.Unmarshal([]byte(line), &e))
		history = append(history, e)
	}
	return history
}

// dataFlags returns the flags that name the data of a task, or nil if the task needs no file.
func dataFlags(t *testing.T, name string) []string {
	t.Helper()
	c, err := task.Named(name, 0)
	switch {
	case err != nil:
		t.Fatal(err)
	case c.Task.Sample == nil && c.Describe().Rows != nil:
		return []string{"--max-len=16", "--data=" + sharedFile(t, "fox.txt", fox)}
	case c.Task.Sample == nil:
		return []string{"--steps-per-epoch=0", "--validation=20", "--data=" + rowsFile(t, name)}
	}
	return nil
}

// rowsFile returns the path of a file with 200 rows for a task.
func rowsFile(t *testing.T, name string) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	words := []string{"cat", "dog", "a", "the", "elephant", "sees"}
	var s strings.Builder
	c := must.Get(task.Named(name, 0))(t)
	s.WriteString(map[data.Kind]string{data.KindQA: "id,question,context,answer\n"}[c.Task.Kind])
	if s.Len() == 0 {
		s.WriteString("id,source,target\n")
	}
	for i := range 200 {
		drawn := make([]string, 1+rng.IntN(5))
		tags := make([]string, len(drawn))
		for i := range drawn {
			drawn[i] = words[rng.IntN(len(words))]
			tags[i] = drawn[i][:1]
		}
		text := strings.Join(drawn, " ")
		answer := strings.Join(tags, " ")
		switch {
		case c.Task.Kind == data.KindSeq2Seq:
			answer = strings.ToUpper(answer)
		case c.Task.Kind == data.KindEmbed:
			answer = text + " again"
		case c.Task.Kind == data.KindRegression:
			answer = fmt.Sprint(len(drawn))
		case c.Task.Kind == data.KindMultiLabel:
			answer = strings.Join(slices.Compact(slices.Sorted(slices.Values(drawn))), "|")
		case c.Task.Kind == data.KindClassification:
			answer = fmt.Sprint(slices.Contains(drawn, "cat"))
		case c.Task.Kind == data.KindQA:
			text, answer = "which is first?,"+text, drawn[0]
		}
		fmt.Fprintf(&s, "%d,%s,%s\n", i, text, answer)
	}
	return sharedFile(t, name+".csv", s.String())
}

func TestTrainEvalPredict(t *testing.T) {
	t.Parallel()
	for _, name := range task.Names() {
		if testing.Short() && testseed.LeftOut(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			flags := slices.Concat([]string{"--task=" + name, "--out=" + dir, "--seed=18446744073709551615"}, dataFlags(t, name))
			if must.Get(task.Named(name, 0))(t).Mix { // compare the losses of the network
				flags = append(flags, "--mix=false", "--monitor=val_loss")
			}
			out := succeed(t, small(flags...)...)

			c := must.Get(task.ReadConfig(dir))(t)
			kind, does := judge.KindOf(&c.Config), c.Describe()
			s, history := readRun(t, dir)
			whole := kind.Score.Name // score of all validation rows together
			switch {
			case does.Predict != nil:
				whole = "mrr"
			case c.Task.Kind == data.KindQA:
				whole = "exact_match"
			}
			if s.Task != name || s.Seed != math.MaxUint64 || s.Epochs != 3 || len(history) != 3 || s.StoppedEarly || s.Params < 1000 {
				t.Errorf("the summary is %+v, with a history of %d epochs, want 3 epochs of the task %s", s, len(history), name)
			}
			best := history[0]
			for i, e := range history {
				loss := fmt.Sprintf("Epoch %d: Train=%.3f, Val=%.3f; ", i, e.TrainLoss, e.ValLoss)
				score := fmt.Sprintf("; %s: Train=%.3f, Val=%.3f", kind.Score.Name, e.Metrics["train_"+kind.Score.Name], e.Metrics["val_"+kind.Score.Name])
				must.Have(t, out, loss, score)
				if e.ValLoss < best.ValLoss {
					best = e
				}
			}
			if s.BestEpoch != best.Epoch || *s.ValLoss != best.ValLoss || s.TrainLoss != best.TrainLoss {
				t.Errorf("the summary is %+v, want the values of the best epoch, %+v", s, best)
			}
			var raw map[string]any
			must.Do(t, json.Unmarshal([]byte(read(t, filepath.Join(dir, runfolder.SummaryFile))), &raw))
			for _, name := range []string{"task", "seed", "epochs", "best_epoch", "stopped_early", "stopped_because", "train_loss", "val_loss", "val_" + whole, "seconds", "params"} {
				if _, ok := raw[name]; !ok {
					t.Errorf("summary.json is %v, want the key %s in it", raw, name)
				}
			}
			want := 7 + len(c.Data.Tokenizers)
			if raw["baseline"] != nil && does.Predict == nil {
				want++
			}
			if files := len(folder(t, dir)); files != want || len(c.Data.Tokenizers) > 0 != c.FromRows() {
				t.Errorf("the run folder has %d files, want %d", files, want)
			}

			score := fmt.Sprintf("Val=%.6f, %s %.4f", *s.ValLoss, metrics.Spoken(whole), *s.ValScore)
			got, answers, _ := strings.Cut(succeed(t, "eval", dir), "\n")
			if rows := c.FromRows(); (answers != "") != rows {
				t.Errorf("after its first line, heed eval prints %q, want scores of answers only for rows of a file", answers)
			}
			if !strings.HasPrefix(got, score) || !strings.Contains(out, "Best epoch "+fmt.Sprint(s.BestEpoch)+": "+got+"\n") {
				t.Errorf("heed eval prints %q, want it to begin with %q, and the same line in the output of heed train, %q", got, score, out)
			}

			// The last line of heed train has a command to try.
			try := regexp.MustCompile(`Try: heed (?:predict|generate|embed) (\S+) (?:--prompt )?(.*?)( --tokens 300)?\n$`).FindStringSubmatch(out)
			input := c.Task.Example
			if try == nil || try[2] != shell(input) {
				t.Fatalf("heed train prints %q, want a command to try with %q at the end", out, input)
			}
			if generates := try[3] != ""; generates != (does.Generate == nil) {
				t.Errorf("heed train prints %q, want heed generate only for text", try[0])
			} else if generates {
				begins(t, succeed(t, "generate", try[1], "--prompt", input, "--tokens", "300"), input)
			}
			answer := "predict" // also of text
			if does.Predict != nil {
				answer = does.Use
			}
			first := succeed(t, answer, try[1], input)
			if strings.Count(first, "\n") != 1 {
				t.Errorf("heed predict prints %q, want one line", first)
			}
			prints(t, first+first, answer, dir, "--", input, input)
			if does.Predict != nil {
				return
			}
			maps := succeed(t, "attention", dir, input)
			begins(t, maps, name+": "+quoted(input)+" → "+first)
			must.Have(t, maps, "blocks.0.attention", "head 0", "head 1", "█ from 75 %")
		})
	}
}

// With --from, a run starts with the weights of a run on other data, and prints which tensors are new.
func TestStartFrom(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	first, classifier, again := ran(t, append(dataFlags(t, "seq2seq"), "--task=seq2seq")...), filepath.Join(base, "classification"), filepath.Join(base, "again")
	from := func(name, out string, more ...string) []string {
		return slices.Concat([]string{"train", "--task=" + name, "--from=" + first, "--max-epochs=1", "--out=" + out}, dataFlags(t, name), more)
	}
	if out := succeed(t, from("seq2seq", again)...); !regexp.MustCompile(`^Starting from \S+: (\d+) of (\d+) tensors\n`).MatchString(out) || !strings.Contains(out, "model: width 16, 1 block, 2 heads") {
		t.Errorf("heed train prints %q, want the number of tensors and the model of the other run", out)
	}
	must.Have(t, succeed(t, from("classification", classifier)...), " tensors; new ones: head.bias (1), head.weight (1); left out: decoder.blocks (26), decoder.embedding (1), decoder.head (2), decoder.norm (2)\n")
	fail(t, heed(from("text", filepath.Join(base, "text"), "--dim=32")...), 1, "can't start from "+first+": none of its weights fit this model")
	fail(t, heed(from("seq2seq", again)...), 1, "holds a run already")
	fail(t, heed("train", "--resume="+again), 1, "is finished")
	fail(t, heed("train", "--resume="+again, "--from="+first), 2, "may be given with it, got --from")
	absent(t, filepath.Join(base, "text"))
}

// heed predict works with a model that a Go program trained on a rule of its own. heed eval doesn't: only that program
// can make the rule's data.
func TestOwnRule(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	rule := data.Rule{
		Name: "flip", Kind: data.KindTagging, Alphabet: "01", MaxLen: 12, Example: "0110",
		Sample: func(rng *rand.Rand, maxLen int) string { return fmt.Sprintf("%0*b", maxLen, rng.IntN(1<<maxLen)) },
		Answer: func(source string) (string, error) {
			return strings.NewReplacer("0", "1", "1", "0").Replace(source), nil
		},
	}
	c := task.Defaults(rule)
	c.Model.Dim, c.Training.MaxEpochs, c.Data.Validation = 16, 2, 100
	own := must.Get(task.New(c))(t)
	dir := filepath.Join(t.TempDir(), "run")
	must.Get(own.Train(t.Context(), dir, train.RunOptions{}))(t)
	prints(t, "101100111000\n", "predict", dir, "010011000111")
	begins(t, succeed(t, "attention", dir, "0110"), "flip: 0110 → ")
	fail(t, heed("predict", dir, "012"), 2, "symbol '2'")
	fail(t, heed("eval", dir), 1, filepath.Join(dir, runfolder.ConfigFile), `the task "flip" has no Sample or no Answer`)
}

func TestStopsEarly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	// Without clipping and at this learning rate, the loss soon rises.
	out := succeed(t, small("--task=copy", "--max-epochs=50", "--patience=2", "--learning-rate=3", "--warm-up=0", "--clip-norm=0", "--out="+dir)...)
	s, history := readRun(t, dir)
	if !s.StoppedEarly || s.Epochs != s.BestEpoch+3 || len(history) != s.Epochs {
		t.Fatalf("the summary is %+v, want a stop after 2 epochs without improvement", s)
	}
	must.Have(t, out, fmt.Sprintf("Early stopping at epoch %d\n", s.Epochs-1))
	if want := fmt.Sprintf("val_loss has not improved for 2 epochs: the best is %.4g, of epoch %d", *s.ValLoss, s.BestEpoch); s.Because != want {
		t.Errorf("the run stopped because %q, want %q", s.Because, want)
	}
	must.Have(t, out, "Stopped because "+s.Because+"\n")
	if *s.ValLoss != history[s.BestEpoch].ValLoss {
		t.Errorf("the summary has loss %v, want %v, the loss of the best epoch", *s.ValLoss, history[s.BestEpoch].ValLoss)
	}
	want := fmt.Sprintf("Val=%.6f, ", *s.ValLoss)
	begins(t, succeed(t, "eval", dir), want)
}

// Flags of early stopping have their effects, and heed train prints them.
func TestStoppingFlags(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		flags   string
		epochs  int
		best    int
		because string
	}{
		{"--keep-last --mode=max", 3, 2, "the limit of 3 epochs is reached"},
		{"--average=0.9999 --patience=1", 3, 2, "the limit of 3 epochs is reached"},
		{"--baseline=0 --patience=2", 2, 1, "val_loss has not improved on the baseline, 0, for 2 epochs"},
		{"--monitor=val_accuracy --mode=min --stopping-threshold=1", 1, 0, "val_accuracy is "},
	} {
		t.Run(c.flags, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			out := succeed(t, small(append(strings.Fields(c.flags), "--task=copy", "--out="+dir)...)...)
			s, history := readRun(t, dir)
			if s.Epochs != c.epochs || s.BestEpoch != c.best || !strings.HasPrefix(s.Because, c.because) || s.StoppedEarly != (c.epochs < 3) {
				t.Errorf("the summary is %+v, want %d epochs, the best %d, because %q", s, c.epochs, c.best, c.because)
			}
			if *s.ValLoss != history[c.best].ValLoss {
				t.Errorf("the summary has loss %v, want the loss of epoch %d, %v", *s.ValLoss, c.best, history[c.best].ValLoss)
			}
			if last := strings.Contains(out, "Last epoch"); last != strings.Contains(c.flags, "keep-last") {
				t.Errorf("heed train prints %q, want \"Last epoch\" only with --keep-last", out)
			}
			if averaged := strings.Contains(out, " 2, averaged weights: Val="); averaged != strings.Contains(c.flags, "average") {
				t.Errorf("heed train prints %q, want \"averaged weights\" only with --average", out)
			}
		})
	}
}

// Without validation, training prints that, and heed eval needs a file.
func TestWithoutValidation(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	for name, flags := range map[string][]string{"sort": {"--task=sort"}, "text": {"--task=text", "--max-len=16", "--data=" + foxText(t)}} {
		dir := filepath.Join(base, name)
		out := succeed(t, small(append(flags, "--validation=0", "--out="+dir)...)...)
		s, history := readRun(t, dir)
		want := fmt.Sprintf("Best epoch %d: Train=%.6f\n", s.BestEpoch, history[s.BestEpoch].TrainLoss)
		if s.ValLoss != nil || s.ValScore != nil || history[0].Validated || len(history) != 3 || !strings.Contains(out, ", without validation\n") || !strings.Contains(out, want) {
			t.Errorf("the summary is %+v, the output %q, want %q in it", s, out, want)
		}
		fail(t, heed("eval", dir), 1, "the run in "+dir+" has no validation set")
	}
}

// At a limit, heed train ends with status 0. The resumed run ends with the same bytes as a run without limits.
func TestLimits(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	args := func(dir string, more ...string) []string {
		return small(append(more, "--task=copy", "--dropout=0.1", "--check-every=7", "--out="+filepath.Join(base, dir))...)
	}
	out := succeed(t, args("whole")...)
	s, history := readRun(t, filepath.Join(base, "whole"))
	if len(history) != 5 || history[3].Step != 28 || history[4].Step != 30 || s.Epochs != 3 || !strings.Contains(out, "\nStep 28: Train=") || !strings.Contains(out, fmt.Sprintf("\nBest step %d: Val=", 30)) {
		t.Errorf("the summary is %+v, the history %+v, the output %q, want checks every 7 steps and at the end", s, history, out)
	}
	dir := filepath.Join(base, "limited")
	want := "Stopped because the limit of 5 steps is reached: heed train --resume " + shell(dir) + " continues the run\n"
	if got := succeed(t, args("limited", "--max-steps=5")...); !strings.HasSuffix(got, want) {
		t.Errorf("heed train prints %q, want %q at the end", got, want)
	}
	must.Have(t, succeed(t, "train", "--resume="+dir, "--max-time=1ns"), "Stopped because the limit of 1ns is reached, after 5 steps: ")
	early := succeed(t, "predict", dir, "--json", "abc") // the weights after 5 steps, before the first check that is due
	succeed(t, "train", "--resume="+dir, "--max-steps=23", "--workers=1")
	if got := succeed(t, "predict", dir, "--json", "abc"); got == early {
		t.Errorf("heed predict prints %q both after 5 steps and after 23", got)
	}
	succeed(t, "train", "--resume="+dir)
	sameRun(t, dir, filepath.Join(base, "whole"))
}

func TestSeedsDecide(t *testing.T) {
	base := t.TempDir()
	for name, seed := range map[string]string{"a": "5", "b": "5", "c": "6"} {
		succeed(t, small("--task=sort", "--dropout=0.2", "--workers=0", "--seed="+seed, "--out="+filepath.Join(base, name))...)
	}
	sameRun(t, filepath.Join(base, "b"), filepath.Join(base, "a"))
	if read(t, filepath.Join(base, "a", runfolder.WeightsFile)) == read(t, filepath.Join(base, "c", runfolder.WeightsFile)) {
		t.Error("seeds 5 and 6 give the same weights")
	}
}

func TestDefaultFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	for range 3 {
		succeed(t, small("--task=copy")...)
	}
	for _, dir := range []string{"runs/copy", "runs/copy-2", "runs/copy-3"} {
		begins(t, succeed(t, "eval", dir), "Val=")
	}
	sameRun(t, "runs/copy-3", "runs/copy")

	// Concurrent calls get different folders.
	const n = 8
	got := make(chan string, n)
	for range n {
		go func() {
			dir, err := newFolder("", "add")
			if err != nil {
				t.Error(err)
			}
			got <- dir
		}()
	}
	seen := map[string]bool{}
	for range n {
		seen[<-got] = true
	}
	if len(seen) != n {
		t.Errorf("%d calls get the folders %v, want all different", n, seen)
	}
}

func TestUnusableFolders(t *testing.T) {
	base := t.TempDir()
	done := copied(t, "--task=copy")
	before := folder(t, done)
	half := filepath.Join(base, "half") // a run without config.json
	must.Do(t, os.CopyFS(half, os.DirFS(done)))
	os.Remove(filepath.Join(half, runfolder.ConfigFile))
	fail(t, heed(small("--out="+done)...), 1, "holds a run already", "--out", "--resume "+shell(done))
	fail(t, heed(small("--out="+half)...), 1, runfolder.WeightsFile, "config.json is missing", "choose another folder")
	fail(t, heed("train", "--resume="+done), 1, "finished", "nothing to resume")
	unchanged(t, done, before)

	t.Run("read-only", func(t *testing.T) {
		ro := filepath.Join(base, "ro")
		os.Mkdir(ro, 0o555)
		if f, err := os.Create(filepath.Join(ro, "x")); err == nil {
			f.Close()
			t.Skip("this user can write to read-only folders")
		}
		fail(t, heed(small("--out="+ro)...), 1, "ro")
		fail(t, heed(small("--out="+ro+"/sub")...), 1, "ro")
	})
	t.Run("runs is a file", func(t *testing.T) {
		t.Chdir(t.TempDir())
		write(t, "runs", "")
		fail(t, heed(small()...), 1, "can't make a folder for the run", "--out")
	})
}

func TestInputs(t *testing.T) {
	t.Parallel()
	word, sum := ran(t, "--task=reverse"), ran(t, "--task=add")
	answers := map[string]string{word: succeed(t, "predict", word, "abc"), sum: succeed(t, "predict", sum, "1+2")}
	for _, test := range []struct{ dir, input, want string }{
		{word, "", "the source is empty, want 1 to 10"},
		{word, "abcdefghijk", "at most 10 symbols, got 11"},
		{word, "ABC", "symbol 'A' at position 0"},
		{word, "a\xff", "UTF-8"},
		{word, "a\nb", `'\n'`},
		{sum, "100+1", "100+1"},
		{sum, "-1+2", "'-'"},
	} {
		t.Run(test.input, func(t *testing.T) {
			right := "abc"
			if test.dir == sum {
				right = "1+2"
			}
			c := heed("predict", test.dir, "--", test.input)
			rejected(t, c, 2, test.want)
			c = heed("predict", test.dir, "--", test.input, right)
			if want := "\n" + answers[test.dir]; c.code != 2 || c.stdout != want || !strings.Contains(c.stderr, test.want) || !strings.HasSuffix(c.stderr, "\nheed: there is no answer to 1 of 2 inputs\n") {
				t.Errorf("with a right input too: status %d, output %q and standard error %q, want 2 and %q", c.code, c.stdout, c.stderr, want)
			}
		})
	}
	if got := strings.Count(succeed(t, "predict", sum, "1+2", "01+02", "99+99"), "\n"); got != 3 {
		t.Errorf("the answers to three sums have %d lines, want 3", got)
	}
}

func TestDivergence(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	// The weight decay subtracts more than the weights: after some warm-up, each step makes them larger.
	c := heed("train", "--task=copy", "--dim=16", "--steps-per-epoch=20", "--max-epochs=20", "--learning-rate=10", "--weight-decay=10", "--warm-up=1000", "--out="+dir)
	fail(t, c, 1, "lower learning rate")
	if !strings.Contains(c.stdout, "Epoch 0: ") {
		t.Fatalf("the run prints %q, want a first epoch before it diverges", c.stdout)
	}
	history := readHistory(t, dir)
	best := slices.MinFunc(history, func(a, b train.Check) int { return cmp.Compare(a.ValLoss, b.ValLoss) })
	begins(t, succeed(t, "eval", dir), fmt.Sprintf("Val=%.6f,", best.ValLoss))
	again := heed("train", "--resume="+dir)
	if again.code != 1 || again.stderr != c.stderr {
		t.Errorf("the resumed run ends with status %d and %q, want 1 and %q", again.code, again.stderr, c.stderr)
	}
}
