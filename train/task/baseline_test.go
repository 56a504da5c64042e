package task

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// wideTasks returns small tasks of the kinds that start from a baseline.
func wideTasks(t *testing.T, do func(t *testing.T, c Config)) {
	for _, kind := range []data.Kind{data.KindClassification, data.KindRegression, data.KindTagging} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := small(t, string(kind))
			if !c.Wide {
				t.Fatal("the default isn't wide")
			}
			do(t, c)
		})
	}
	t.Run("published tagging", func(t *testing.T) {
		t.Parallel()
		var rows strings.Builder
		words, tags := []string{"a", "cat", "dog", "elephant", "sees"}, []string{"X", "NOUN", "NOUN", "NOUN", "VERB"}
		for i := range 125 {
			fmt.Fprintf(&rows, "%s %s %s\t%s %s %s\n", words[i%5], words[i/5%5], words[i/25], tags[i%5], tags[i/5%5], tags[i/25])
		}
		c := withFile(t, "tagging", "rows.tsv", rows.String())
		if err := c.StartFrom(publishedFolder(t, "bert")); err != nil {
			t.Fatal(err)
		}
		c.Wide, c.Training.BatchSize, c.Training.MaxEpochs = true, 16, 2
		do(t, c)
	})
}

// New decides whether a linear model would be too large by the number of texts that it learns: for tags, the symbols.
func TestLinearTexts(t *testing.T) {
	t.Parallel()
	wideTasks(t, func(t *testing.T, c Config) {
		task := made(t, c)
		s := task.set.(*rowSet)
		texts, starts := task.Config.linearTexts(linearRows(s.Train))
		if got := s.linearTexts(&task.Config); got != texts.N && !(c.published() && got > texts.N) || starts[s.Train.Len()] != texts.N {
			t.Errorf("New counts %d texts, and the linear model learns %d", got, texts.N)
		}
	})
}

// Before the first step, a wide model answers as its baseline does, and the training rows have the scores of models
// that haven't seen them.
func TestWideBeginsWithTheBaseline(t *testing.T) {
	t.Parallel()
	wideTasks(t, func(t *testing.T, c Config) {
		task := made(t, c)
		if err := task.FitBaseline(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, values := evaluated(t, task), task.baseline.values
		if len(values) == 0 || math.Abs(s.Value-values[s.Name]) > 1e-5 {
			t.Errorf("the model has %s %v, and the baseline %v", s.Name, s.Value, values)
		}
		rows := task.set.(*rowSet)
		seen := task.scoresOf(linearRows(rows.Train)).values
		if len(task.baseline.held) != len(seen) || slices.Equal(task.baseline.held, seen) {
			t.Error("the training rows have the scores of a model that has seen them")
		}
		r := judged(t, task, task.Examples(), PredictOptions{})
		if got := kindOf(c.Task.Kind).values(r); fmt.Sprint(got) != fmt.Sprint(values) || fmt.Sprint(r.Baseline) != fmt.Sprint(values) {
			t.Errorf("the answers have %v, and the baseline %v, want %v for both", got, r.Baseline, values)
		}
		if !strings.Contains(r.String(), "Baseline: a linear model of words and characters, ") {
			t.Errorf("the report is\n%s", r)
		}
	})
}

// A run keeps its baseline: a resumed run and the opened model have the same bytes and answers.
func TestBaselineInTheFolder(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	wideTasks(t, func(t *testing.T, c Config) {
		whole, dir := trained(t, c)
		part := filepath.Join(t.TempDir(), "run")
		run(t, made(t, c), part, train.RunOptions{MaxSteps: 5})
		resumed := made(t, c)
		run(t, resumed, part, train.RunOptions{})
		wantFiles(t, part, dir, runfolder.BaselineFile, runfolder.WeightsFile, runfolder.CheckpointFile, runfolder.HistoryFile)
		read, err := ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(read.Baseline) != fmt.Sprint(whole.baseline.values) {
			t.Errorf("the run has the baseline %v, want %v", read.Baseline, whole.baseline.values)
		}
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := resumed.Load(dir); err != nil { // Train leaves the last weights
			t.Fatal(err)
		}
		for _, e := range whole.Examples()[:5] {
			got, err1 := m.Predict(e.Source)
			want, err2 := resumed.Predict(e.Source)
			if got != want || err1 != nil || err2 != nil {
				t.Errorf("%q: the opened model answers %q, %v, and the resumed one %q, %v", e.Source, got, err1, want, err2)
			}
		}
		// The model can't answer without its baseline, nor with that of another run.
		c.Seed++
		_, other := trained(t, c)
		content, err := os.ReadFile(filepath.Join(other, runfolder.BaselineFile))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, runfolder.BaselineFile), string(content))
		_, err = Open(dir)
		wantError(t, err, runfolder.BaselineFile, "baseline of another run")
		write(t, filepath.Join(dir, runfolder.BaselineFile), string(content[:len(content)/2]))
		_, err = Open(dir)
		wantError(t, err, runfolder.BaselineFile)
		if err := os.Remove(filepath.Join(dir, runfolder.BaselineFile)); err != nil {
			t.Fatal(err)
		}
		_, err = Open(dir)
		wantError(t, err, runfolder.BaselineFile)
	})
}

// Without Wide, the baseline is only for comparison.
func TestNotWide(t *testing.T) {
	t.Parallel()
	wideTasks(t, func(t *testing.T, c Config) {
		c.Wide = false
		task, dir := trained(t, c)
		if err := os.Remove(filepath.Join(dir, runfolder.BaselineFile)); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Judge(t.Context(), task.Examples(), PredictOptions{})
		wantError(t, err, "baseline.safetensors is missing, and summary.json needs it")
		if err := task.Load(dir); err != nil {
			t.Fatal(err)
		}
		_, err = task.Evaluate(t.Context())
		wantError(t, err, "baseline.safetensors is missing")
		if err := os.Remove(filepath.Join(dir, runfolder.SummaryFile)); err != nil {
			t.Fatal(err)
		}
		if m, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		if r := judged(t, &Task{Model: m}, task.Examples(), PredictOptions{}); r.Baseline != nil {
			t.Errorf("without the file, the report has the baseline %v", r.Baseline)
		}
	})
	c := small(t, "seq2seq")
	c.Wide = true
	_, err := New(c)
	wantError(t, err, "wide", "seq2seq")
}

// A run whose checks aren't better than the baseline keeps the baseline's answers.
func TestKeepBaseline(t *testing.T) {
	t.Parallel()
	c := withFile(t, "classification", "rows.tsv", labelled(200))
	task, dir := trained(t, c) // its baseline is always right
	read, err := ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := read.Summary
	if !s.KeptBaseline || *s.ValScore != s.Baseline["accuracy"] || !strings.Contains(task.BesideBaseline(s), "answers as the baseline does") {
		t.Errorf("the summary is %+v, want one that kept the baseline", s)
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := judged(t, &Task{Model: m}, task.Examples(), PredictOptions{}); r.Classes.Accuracy() != *s.ValScore {
		t.Errorf("the opened model has the accuracy %v, and the summary %v", r.Classes.Accuracy(), *s.ValScore)
	}
	// Accuracies that are better by chance and by more than chance: the margin is the square root of 0.05 / rows.
	margin := math.Sqrt(0.05 / float64(task.set.judged()))
	for _, test := range []struct {
		better float64
		kept   bool
	}{{0.9 * margin, true}, {1.1 * margin, false}} {
		task.baseline.values["accuracy"] = 0.5
		s := &Summary{Best: train.Check{Validated: true, Metrics: map[string]float64{"val_accuracy": 0.5 + test.better}}}
		if err := task.keepBaseline(t.Context(), s); err != nil || s.KeptBaseline != test.kept {
			t.Errorf("better by %v: it kept the baseline is %v, %v, want %v", test.better, s.KeptBaseline, err, test.kept)
		}
	}
}

// labelled returns rows whose label is their first word.
func labelled(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "%s %d\t%[1]s\n", []string{"red", "blue"}[i%2], i)
	}
	return s.String()
}

func TestBestScale(t *testing.T) {
	// With two classes and scores of ±1, the softmax must give the share of right labels, smoothed by one row's share.
	for _, share := range []float64{0.9, 1} {
		var scores []float32
		var labels []int
		for i := range 100 {
			label := 0
			if float64(i) >= 100*share {
				label = 1
			}
			scores, labels = append(scores, 1, -1), append(labels, label)
		}
		p := (100*share + 0.5) / 101
		if got, want := float64(bestScale(scores, labels, 2)), math.Log(p/(1-p))/2; math.Abs(got-want) > 1e-4 {
			t.Errorf("for %v right labels, the scale is %v, want %v", share, got, want)
		}
	}
}

func TestBesideBaseline(t *testing.T) {
	t.Parallel()
	c := withFile(t, "classification", "rows.tsv", labelled(80))
	c.Data.ValidationFile, c.Data.Validation = c.Data.File, 80
	task := made(t, c)
	few := ", but 80 rows are too few to tell them apart"
	for _, test := range []struct {
		score, baseline, chance float64
		kept, guesses           bool
		from, want              string
	}{
		{score: 0.75, baseline: 0.5, want: "the model is better by 0.2500\n"},
		{score: 0.75, baseline: 0.75, chance: 1, want: "the model is as good\n"},
		{score: 0.6, baseline: 0.9, want: "worse by 0.3000: more rows help most\n"},
		{score: 0.9, baseline: 0.9375, chance: 0.25, want: "worse by 0.0375" + few + ": more rows help most\n"},
		{score: 0.95, baseline: 0.9375, chance: 1, want: "better by 0.0125" + few + "\n"},
		{score: 1, baseline: 0.95, chance: 0.125, want: "better by 0.0500" + few + "\n"},
		{score: 1, baseline: 1, chance: 1, want: "the model is as good\n"},
		{score: 1, baseline: 1, chance: 1, kept: true, want: "so the model answers as the baseline does\n"},
		{score: 0.9, baseline: 0.9, chance: 1, kept: true, want: "so the model answers as the baseline does: more rows help most\n"},
		{score: 0.5, baseline: 0.8, guesses: true, want: "worse by 0.3000: it is hardly better than guesses; to compare texts, begin with a published model (--from)\n"},
		{score: 0.55, baseline: 0.5, chance: 0.5, guesses: true, want: few + ": it is hardly better than guesses; to compare texts, begin with a published model (--from)\n"},
		{score: 0.5, baseline: 0.8, guesses: true, from: "bert", want: "worse by 0.3000: more rows help most\n"},
	} {
		s := &Summary{ScoreName: "accuracy", ValScore: &test.score, Baseline: map[string]float64{"accuracy": test.baseline}, Chance: &test.chance, KeptBaseline: test.kept, Guesses: test.guesses}
		task.Config.From.Dir, task.Config.Wide = test.from, true
		if got := task.BesideBaseline(s); !strings.HasSuffix(got, test.want) {
			t.Errorf("%v beside %v: got %q, want %q at its end", test.score, test.baseline, got, test.want)
		}
	}
	if got := task.BesideBaseline(&Summary{}); got != "" {
		t.Errorf("without a baseline, got %q", got)
	}
	value := 0.6
	task.Config.From.Dir, task.Config.Wide = "", false
	s := &Summary{ScoreName: "accuracy", ValScore: &value, Baseline: map[string]float64{"accuracy": 0.9}}
	if got := task.BesideBaseline(s); !strings.HasSuffix(got, ": more rows help most; --wide starts from the baseline\n") {
		t.Errorf("got %q, want the advice of --wide", got)
	}
	for _, n := range []int{4, leastRows - 1} {
		_, err := New(withFile(t, "classification", "few.tsv", labelled(n)))
		wantError(t, err, "at least 20, got")
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct {
		x        []float32
		y        []float64
		by, plus float32
	}{
		{[]float32{1, 2, 3}, []float64{5, 7, 9}, 2, 3},
		{[]float32{1, 2, 3}, []float64{9, 7, 5}, 0, 7}, // a falling line would turn the model's answers around
		{[]float32{4, 4}, []float64{1, 2}, 0, 1.5},
	} {
		if by, plus := line(test.x, test.y); math.Abs(float64(by-test.by)) > 1e-6 || math.Abs(float64(plus-test.plus)) > 1e-6 {
			t.Errorf("the line through %v and %v is %v·x + %v, want %v·x + %v", test.x, test.y, by, plus, test.by, test.plus)
		}
	}
}
