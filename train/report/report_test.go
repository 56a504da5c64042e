package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/optim"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// trained trains a small model. If content isn't empty, it is the text of the data file. It returns the task, and a
// function that reads the run folder and returns a new Run.
func trained(t *testing.T, name, content string, change func(c *task.Config)) (*task.Task, func() *Run) {
	t.Helper()
	c := must.Get(task.Named(name, 0))(t)
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 16, 1, 2
	c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.MaxEpochs, c.Data.Validation = 16, 10, 2, 100
	if content != "" {
		c.Data.File = filepath.Join(t.TempDir(), "data.tsv")
		if c.Describe().Rows == nil {
			c.Training.StepsPerEpoch, c.Data.Validation = 0, 30
		}
		must.Do(t, os.WriteFile(c.Data.File, []byte(content), 0o666))
	}
	if change != nil {
		change(&c)
	}
	learned := must.Get(task.New(c))(t)
	t.Cleanup(func() { learned.Close() })
	dir := filepath.Join(t.TempDir(), "run")
	must.Get(learned.Train(t.Context(), dir, train.RunOptions{}))(t)
	return learned, func() *Run {
		r := must.Get(task.ReadRun(dir))(t)
		return FromTask(dir, r)
	}
}

// written returns the page of a run.
func written(t *testing.T, r *Run) string {
	t.Helper()
	var s strings.Builder
	must.Do(t, r.Write(&s))
	return s.String()
}

// wantIn checks that a page has all texts in has and none in hasnt.
func wantIn(t *testing.T, page string, has, hasnt []string) {
	t.Helper()
	must.Have(t, page, has...)
	must.Lack(t, page, hasnt...)
}

// hostile are texts that could do harm on a page that doesn't escape them.
var hostile = []string{`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, "\u202eturned", "bell\a", `';alert(3)//`, "<!--", "{{.}}", "line\u2028end"}

// rows returns a file whose sources and answers contain hostile texts.
func rows(answer func(i int) string) string {
	var s strings.Builder
	for i := range 240 {
		fmt.Fprintf(&s, "zebra%d %s\t%s\n", i, hostile[i%len(hostile)], answer(i))
	}
	return s.String()
}

func TestPagesOfEveryKind(t *testing.T) {
	text := strings.Repeat("The zebra jumps over <script>alert(1)</script> and \u202eall that.\n", 60)
	characters := fmt.Sprintf("characters</th><td><bdi>%d</bdi>", utf8.RuneCountInString(text))
	labels := rows(func(i int) string { return hostile[i/2%2] })
	evaluations := map[string][]string{ // texts in pages of evaluations, which have the sections of the runs' pages
		"seq2seq": {"The symbol error rate is", "By length of the source", "accuracy"}, "entities": {"Scores by class", "Entities", "F1 of entities"},
		"pairs of texts": {"mean reciprocal rank of TF-IDF of words</dt>", "The right text comes first for"}, "scores of pairs": {"R² is", "Answers farthest"},
	}
	for name, c := range map[string]struct {
		task, content string
		change        func(c *task.Config)
		has, hasnt    []string
	}{
		"rule": {"copy", "", nil, []string{"By length of the source", "learned the task copy (", "validation accuracy"}, []string{"What it writes", "Mistaken classes"}},
		"no validation": {"copy", "", func(c *task.Config) { c.Data.Validation = 0 },
			[]string{"training loss, nats"}, []string{"validation accuracy", "What it answers"}},
		"one epoch, by steps": {"brackets", "", func(c *task.Config) { c.Training.MaxEpochs, c.Training.CheckEvery = 1, 5 },
			[]string{"Mistaken classes", `"label":"step"`, "step 10"}, nil},
		"seq2seq": {"seq2seq", rows(func(i int) string { return fmt.Sprint("okapi ", i%3) }), nil, []string{"The symbol error rate is", "okapi", "By length of the source", "targets are smoothed by 0.1", "for each right symbol, not 100"}, []string{"BLEU"}},
		"smoothed classes": {"brackets", "", func(c *task.Config) { c.Training.LabelSmoothing = 0.2 },
			[]string{"training aims at a probability of 90.0\u00a0% for the right class, not 100\u00a0%. So the confidence in an answer stays below"}, nil},
		"classification": {"classification", labels, nil, []string{"Mistaken classes", `<th scope="row">training labels</th>`, `<th scope="row">most frequent</th>`, `"title":"Macro F1"`}, []string{"smoothed by"}},
		"tagging":        {"tagging", strings.Repeat("zebra runs\tN V\nthe zebra\tD N\na cat sees\tD N V\n", 40), nil, []string{"Mistaken classes", "of the validation tags are right"}, []string{"Entities"}},
		"entities":       {"tagging", strings.Repeat("ann lee sees zebra\tB-PER I-PER O B-<i>\nthe zebra sees ann\tO B-<i> O B-PER\n", 60), nil, []string{"Mistaken classes", "Entities", "PER</bdi></th>", "B-&lt;i&gt;", "all</bdi></th>", "<small><bdi>ann lee (PER), zebra (&lt;i&gt;)</bdi></small>", `"title":"Entity F1"`, "validation entity F1</th>"}, nil},
		"pairs of texts": {"embed", strings.ReplaceAll(rows(func(i int) string { return fmt.Sprint("okapi ", i%50) }), "zebra", "zebra "), nil,
			[]string{"The validation mean reciprocal rank is", "TF-IDF of words has", "mean reciprocal rank of TF-IDF of words</dt>", "The right text comes first for", "Right texts with the worst ranks", "<th scope=\"col\">nearest text</th>"},
			[]string{"completely right", "confidence", "By length", "linear baseline"}},
		"scores of pairs": {"embed", rows(func(i int) string { return fmt.Sprintf("okapi %d\t0.%d", i%7, i%7) }), nil,
			[]string{"The validation Spearman correlation is", "R² is", "Answers farthest", " │ okapi"}, []string{"completely right", "confidence", "linear baseline"}},
		"text": {"text", text, func(c *task.Config) { c.Task.MaxLen = 16 }, []string{"What it writes", "of the validation characters", characters}, []string{"What it answers", ">tokens</th>"}},
		"masked text": {"mlm", text, func(c *task.Config) { c.Task.MaxLen = 16 },
			[]string{"of the validation masked characters are predicted", "(the masked characters of a file)"}, []string{"What it writes", "What it answers"}},
		"text in tokens": {"text", text, func(c *task.Config) { c.Task.MaxLen, c.Data.SourceUnits = 16, tokenizer.BPE },
			[]string{"of the validation tokens", characters, `tokens</th><td><bdi>`, "the task text (the next token of a file)", "validation loss, nats per token", "validation loss, nats per character"}, []string{"next character"}},
	} {
		if testing.Short() && testseed.LeftOut(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			learned, read := trained(t, c.task, c.content, c.change)
			answered := func(private bool) string {
				r := read()
				r.Private = private
				must.Do(t, r.AddAnswers(t.Context(), learned.Model, learned))
				return written(t, r)
			}
			page := answered(false)
			scripts, shows := []string{"<script type=\"application/json\" id=\"curves\">", "<script type=\"application/json\">", "<script>"}, "<h2>What it attends to</h2>"
			if name == "classification" {
				scripts, shows = slices.Delete(scripts, 1, 2), "<h2>Why it answers so</h2>"
			}
			wantIn(t, page, append(c.has, "<h2>Configuration</h2>", shows, "learning rate", "Time per step, ms", "Training stopped because the l"),
				append(c.hasnt, "alert(1)</script>", "<img", "\u202e", "\a", "\u2028", ">NaN", "ZgotmplZ", "There are no examples here"))
			tags := regexp.MustCompile(`(?i)<script[^>]*>`).FindAllString(page[strings.Index(page, "<body>"):], -1)
			slices.Sort(tags)
			if tags = slices.Compact(tags); !slices.Equal(tags, scripts) {
				t.Errorf("the page has the script tags %q, want only known ones", tags)
			}
			if len(page) > 200_000 {
				t.Errorf("the page has %d bytes, want at most 200000", len(page))
			}

			if has := evaluations[name]; has != nil {
				wantIn(t, evaluated(t, learned), append(has, "rows</dt>", "95 % interval of "), []string{"NaN", "<script", "Why it answers so", "even sample"})
			}
			wantIn(t, answered(true), []string{"<h2>Configuration</h2>"}, []string{"zebra", "okapi", "training aims at", "What it writes", "What it attends to", "Why it answers so", "Wrong answers", "Right answers"})
			r := read()
			r.Missing = "the file </script> has moved"
			wantIn(t, written(t, r), []string{"There are no examples here: the file &lt;/script&gt; has moved."}, []string{"By length", "Mistaken classes"})
		})
	}
}

// made returns a run with the given number of checks, with the best check in the middle.
func made(checks int, change func(i int, c *train.Check)) *task.Run {
	r := &task.Run{Config: task.Config{Config: model.Config{Task: data.Rule{Name: "copy", Kind: data.KindTagging}}}, Seconds: make([]float64, checks), Best: checks / 2}
	for i := range checks {
		c := train.Check{Epoch: i, Step: 10 * (i + 1), TrainLoss: 1 / float64(i+1), ValLoss: 2 / float64(i+1), Validated: true,
			Metrics: map[string]float64{"train_accuracy": 0.5, "val_accuracy": 0.25}}
		if change != nil {
			change(i, &c)
		}
		r.History = append(r.History, c)
	}
	return r
}

// run returns the run that made makes as a Run.
func run(checks int, change func(i int, c *train.Check)) *Run {
	return FromTask("runs/made", made(checks, change))
}

// The page of a head that was solved without epochs has no curves and speaks of no epochs.
func TestSolvedRun(t *testing.T) {
	for mix, answers := range map[bool]string{true: "A linear model answers.", false: "The head is a linear model"} {
		r := made(1, nil)
		c := &r.Config
		c.Data.File, c.From, c.Mix = "rows.csv", model.From{Dir: "minilm", Tune: "head"}, mix
		r.Baseline = map[string]float64{"accuracy": 0.25}
		r.Summary = &task.Summary{Because: "the head is solved"}
		has, hasnt := []string{answers, "without epochs"}, []string{"How training went", "id=\"curves\"", "epoch 0", "Answers are mixed", "Training stopped"}
		if beside := "; a linear baseline has"; mix { // the same model
			r.Summary.Linear, hasnt = new(1.0), append(hasnt, beside)
		} else {
			has = append(has, beside)
		}
		wantIn(t, written(t, FromTask("runs/made", r)), has, hasnt)
	}
}

// Where the linear model has the whole weight, the page neither compares it with itself nor says which weights answer.
func TestLinearModelAnswers(t *testing.T) {
	r := made(3, nil)
	r.Baseline, r.Summary = map[string]float64{"accuracy": 0.75}, &task.Summary{Because: "the limit is reached", Linear: new(1.0)}
	wantIn(t, written(t, FromTask("runs/made", r)), []string{"The linear model answers alone", "The network alone has a validation accuracy of 25.0\u00a0%", "How training went"},
		[]string{"a linear baseline has", "weights kept from", "Answers are mixed"})
}

func TestCharts(t *testing.T) {
	for name, c := range map[string]struct {
		run    *Run
		titles []string
		points int
		marks  []mark
		rows   int
		log    bool
	}{
		"one":  {run(1, nil), []string{"Loss, nats", "Accuracy"}, 1, []mark{{0, "kept, so far"}}, 1, false},
		"many": {run(300, nil), []string{"Loss, nats", "Accuracy"}, 300, []mark{{150, "kept"}, {299, "so far"}}, 300, true},
		"too many": {run(30_001, func(_ int, c *train.Check) { c.LearningRate = 1e-3 }), []string{"Loss, nats", "Accuracy", "Learning rate"},
			1877, []mark{{15_000, "kept"}, {30_000, "so far"}}, 397, true},
		"not finite": {run(3, func(i int, c *train.Check) { c.ValLoss, c.Metrics = math.Inf(1), nil }), []string{"Loss, nats"}, 3, []mark{{1, "kept"}, {2, "so far"}}, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			charts := c.run.charts()
			var titles []string
			for _, chart := range charts {
				titles = append(titles, chart.Title)
			}
			loss := charts[0]
			if !slices.Equal(titles, c.titles) || !slices.Equal(loss.Marks, c.marks) || loss.Log != c.log {
				t.Errorf("got charts %q, marks %v and logarithmic %t, want %q, %v and %t", titles, loss.Marks, loss.Log, c.titles, c.marks, c.log)
			}
			if n := len(loss.Series[1].Values); n != c.points || n != len(loss.Series[1].X) {
				t.Errorf("the curve has %d values and %d x, want %d of both", n, len(loss.Series[1].X), c.points)
			}
			table := c.run.checks()
			if len(table.Rows) != c.rows || table.LeftOut != len(c.run.History)-c.rows || table.Rows[table.Best][0] != fmt.Sprint(c.run.best()) {
				t.Errorf("the table has %d rows and leaves out %d, its best row is %q; want %d rows", len(table.Rows), table.LeftOut, table.Rows[table.Best], c.rows)
			}
			if page := written(t, c.run); len(page) > 600_000 || strings.Contains(page, `"values":[+`) {
				t.Errorf("the page has %d bytes, want at most 600000, and numbers that are valid in JSON", len(page))
			}
		})
	}
	r := run(3, nil)
	r.stepSeconds[1] = 0.002
	times := r.charts()[2].Series[0].Values
	if got := fmt.Sprint(times[0].finite(), times[1], times[2].finite()); got != "false 2 false" {
		t.Errorf("if only the second time is known, the curve is %v, want its second value to be 2 and the others to be NaN", times)
	}
	for x, want := range map[number]string{times[0]: "null", 1. / 3: "0.3333333", 123_456_789: "1.23456789e+08"} {
		if b, err := x.MarshalJSON(); err != nil || string(b) != want {
			t.Errorf("%v is %s in JSON, %v, want %s", float64(x), b, err, want)
		}
	}
}

// The page of a Run without a task shows what the Run has, and nothing about tasks.
func TestRunWithoutTask(t *testing.T) {
	history := made(3, nil).History
	r := &Run{
		Title: "own </title><b>", Result: &train.Result{History: history, Best: history[1], StoppedBecause: "patience ran out"},
		Config: train.Config{Stopping: train.StoppingConfig{KeepLast: true}}, Params: 12_000, Seconds: 75,
		Settings: map[string]any{
			"seed": 7, "format": "wav", "model": map[string]any{"hidden_size": 32}, "data": map[string]any{"clips": 900}, "note": "<i>\u202e",
		},
	}
	page := written(t, r)
	wantIn(t, page, []string{
		"<h1><bdi>own &lt;/title&gt;&lt;b&gt;</bdi></h1>", "A model of 12\u00a0thousand parameters.", "Training stopped because patience ran out. The weights are from the last check, epoch 1.",
		"<h3>Run</h3>", "wav", "<h3>Model</h3>", "hidden size", "<h2>What it learned from</h2>", "clips", `"title":"Loss"`, `"label":"kept"`, `<tr class="kept"><td><bdi>1</bdi></td>`,
	}, []string{"<b>", "<i>", "\u202e", "nats", "What it answers", "learned the task", "Time per step", "<h3>Data</h3>"})
	r.Settings, r.Config.CheckEvery = nil, 10
	wantIn(t, written(t, r), []string{"the last check, step 20", `"label":"step"`, "Configuration", `<th scope="row">check every</th><td><bdi>10<`}, []string{"What it learned from", "averages"})
	r.Config.Optimizer.Average = 0.99
	wantIn(t, written(t, r), []string{"The weights are from the last check, step 20. They are averages of the weights after each step, with a decay of 0.99. Validation scores belong to the averages"}, nil)

	other := &Run{Title: "own </title><b>", Result: &train.Result{History: history[:2], Unfinished: true}, Settings: struct{ Seed int }{8}}
	var s strings.Builder
	must.Do(t, Compare(&s, []*Run{r, other}))
	wantIn(t, s.String(), []string{"Validation loss", "12000", "patience ran out", "not finished", "Seed"}, []string{"<b>", "nats", "Time per step"})
	if got := other.best(); got != 1 {
		t.Errorf("without a Best, the kept check is %d, want 1, the last one", got)
	}
	for name, bad := range map[string]*Run{
		"no Result": {}, "no check": {Result: new(train.Result)}, "settings": {Result: r.Result, Settings: math.NaN()},
	} {
		path := filepath.Join(t.TempDir(), "report.html")
		if bad.Save(path) == nil || Compare(io.Discard, []*Run{r, bad}) == nil {
			t.Errorf("%s: got no error, want one from Save and from Compare", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file is left after the error", name)
		}
	}
	must.Fail(t, Compare(io.Discard, nil), "at least one run")
}

// lookahead is a rule of a program's own.
type lookahead struct{ optim.SGD }

// The page of a run with a rule that can't go to JSON shows the rule's type.
func TestRunWithOwnRule(t *testing.T) {
	history := made(1, nil).History
	r := &Run{Result: &train.Result{History: history, Best: history[0]}, Config: train.Config{MaxEpochs: 7, Optimizer: optim.Config{Solver: lookahead{}, LearningRate: 0.25}}}
	path := filepath.Join(t.TempDir(), "report.html")
	must.Do(t, r.Save(path))
	page := must.Get(os.ReadFile(path))(t)
	wantIn(t, string(page), []string{"solver kind</th><td><bdi>report.lookahead<", "learning rate</th><td><bdi>0.25<", "max epochs</th><td><bdi>7<"}, []string{"adamw"})
}

// Each setting has its own name in the tables, and a 0 that isn't an amount is a word.
func TestSettings(t *testing.T) {
	run := made(1, nil)
	c := &run.Config
	c.Model.Dropout, c.Model.Block.Dropout, c.Model.Block.Attention.Dropout, c.Model.Block.FeedForward.Dropout = 0.1, 0.2, 0.3, 0.4
	c.Training.Optimizer.LearningRate = 0.5
	r := FromTask("runs/made", run)
	settings := must.Get(r.settings())(t)
	values := map[string]string{}
	for _, g := range groups(settings) {
		for _, s := range g.Rows {
			if _, ok := values[g.Title+" "+s.Name]; ok {
				t.Errorf("the table %s has two settings with the name %s", g.Title, s.Name)
			}
			values[g.Title+" "+s.Name] = s.Value
		}
	}
	for name, want := range map[string]string{
		"Model dropout of the embeddings": "0.1", "Model dropout of the sub-layers' outputs": "0.2", "Model dropout of the attention weights": "0.3",
		"Model dropout of the hidden units": "0.4", "Training max epochs": "no limit", "Training stopping patience": "no early stopping",
		"Training weight decay": "none", "Training schedule warm up": "none", "Training schedule decay": "none", "Training schedule floor": "0", "Training learning rate": "0.5",
	} {
		if got := values[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	wantIn(t, written(t, r), []string{`<th scope="row">validation</th><td><bdi>none</bdi></td>`}, nil)
	run = made(1, nil)
	run.Config.Model.Dropout, run.Config.Training.MaxEpochs = 0.2, 3
	differ := must.Get(differences([]*Run{r, FromTask("runs/other", run)}))(t)
	for _, want := range []difference{{"dropout of the embeddings", []string{"0.1", "0.2"}}, {"training max epochs", []string{"no limit", "3"}}} {
		if !slices.ContainsFunc(differ, func(d difference) bool { return d.Name == want.Name && slices.Equal(d.Values, want.Values) }) {
			t.Errorf("the settings that differ are %v, want among them %v", differ, want)
		}
	}
}

// A private page has no path and no text of a data file, not even of its bad rows. Other pages have them.
func TestPrivate(t *testing.T) {
	secret := t.TempDir()
	other := filepath.Join(secret, "okapis.tsv")
	must.Do(t, os.WriteFile(other, []byte("zebra 1\tyes\nokapi 2\tno\n"), 0o666))
	learned, read := trained(t, "classification", strings.Repeat("zebra 1\tyes\na 2\tno\n", 100)+"zebra without a label\n", func(c *task.Config) {
		c.Data.ValidationFile, c.Data.Validation = other, -1
	})
	for _, private := range []bool{true, false} {
		r := read()
		r.Private = private
		must.Do(t, r.AddAnswers(t.Context(), learned.Model, learned))
		both := made(3, nil)
		both.Config.Data.File, both.Config.Data.TargetFile, both.Config.Data.ValidationTargetFile = "/zebra/sources", "/zebra/answers", "/zebra/held"
		both.Config.Data.MoreFiles, both.Config.From.Dir = []string{"/zebra/more"}, "/zebra/first"
		a, b := FromTask(filepath.Join(secret, "made"), both), FromTask("zebra/made", made(3, nil))
		a.Private, b.Private = private, private
		var compared strings.Builder
		must.Do(t, Compare(&compared, []*Run{a, b}))
		for _, page := range []string{written(t, r), written(t, a), compared.String()} {
			if private {
				must.Lack(t, page, "zebra", "okapi", secret, learned.Config.Data.File)
			} else {
				must.Have(t, page, "zebra")
			}
		}
		if private {
			wantIn(t, written(t, r), []string{`left out</th><td><bdi>1 bad row of 201</bdi>`, `<th scope="row">validation</th><td><bdi>2 rows</bdi>`}, nil)
			wantIn(t, compared.String(), []string{"<bdi>1: made</bdi>", "<bdi>2: made</bdi>"}, nil)
		}
	}
}

func TestConfusionOfManyClasses(t *testing.T) {
	var c score.Confusion
	for i := range 40 {
		for range 50 - i {
			c.Add(fmt.Sprint("class", i), fmt.Sprint("class", i))
		}
	}
	for range 7 {
		c.Add("class38", "class39")
	}
	c.Add("", "class3")
	table := confusionOf(&c)
	if table.Of != 41 || len(table.Classes) != shownClasses || len(table.Rows) != shownClasses || len(table.Rows[0].Cells) != shownClasses {
		t.Fatalf("the table has %d classes of %d, want %d of 41", len(table.Classes), table.Of, shownClasses)
	}
	for _, class := range []string{"class38", "class39", "class3", "(none)"} {
		if !slices.Contains(table.Classes, class) {
			t.Errorf("%s was mistaken, but the table has only %q", class, table.Classes)
		}
	}
	right, answered := slices.Index(table.Classes, "class39"), slices.Index(table.Classes, "class38")
	if cell := table.Rows[right].Cells[answered]; cell.N != 7 || cell.Right || math.Abs(cell.Share-7.0/18) > 1e-9 {
		t.Errorf("the cell for class39 answered as class38 is %+v, want N 7, Right false and Share 7/18", cell)
	}
}

func TestDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		a, b       string
		units      tokenizer.Units
		wantA, inB parts
	}{
		"amid":       {"2024-03-07", "2024-08-07", tokenizer.Characters, parts{"2024-0", "3", "-07"}, parts{"2024-0", "8", "-07"}},
		"all":        {"yes", "no", tokenizer.Characters, parts{"", "yes", ""}, parts{"", "no", ""}},
		"inserted":   {"aa", "aaa", tokenizer.Characters, parts{"aa", "", ""}, parts{"aa", "a", ""}},
		"tokens":     {"P OW L", "P AO L", tokenizer.Tokens, parts{"P ", "OW", " L"}, parts{"P ", "AO", " L"}},
		"token more": {"Y OW", "Y OW Y OW", tokenizer.Tokens, parts{"Y OW", "", ""}, parts{"Y OW ", "Y OW", ""}},
		"nothing":    {"", "a", tokenizer.Characters, parts{}, parts{"", "a", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := differ(c.a, c.b, c.units); a != c.wantA || b != c.inB {
				t.Errorf("got %q and %q, want %q and %q", a, b, c.wantA, c.inB)
			}
		})
	}
}

// A wrong label stands beside the right one as it is. A wrong sequence has a mark where it differs.
func TestExampleOfMarksSequencesOnly(t *testing.T) {
	wrong := judge.Judged{Source: "a", References: []string{"shipping"}, Answer: model.Answer{Text: "shopping"}}
	if e := exampleOf(wrong, ""); e.Answer != (parts{Before: "shopping"}) || e.Want != (parts{Before: "shipping"}) {
		t.Errorf("for a label, got %+v and %+v, want both without a middle", e.Answer, e.Want)
	}
	if e := exampleOf(wrong, tokenizer.Characters); e.Answer != (parts{"sh", "o", "pping"}) || e.Want != (parts{"sh", "i", "pping"}) {
		t.Errorf("for a sequence, got %+v and %+v, want the middles o and i", e.Answer, e.Want)
	}
}

// For each source, spread chooses all examples or none. It chooses fewer examples if sources are long.
func TestSpread(t *testing.T) {
	var examples []data.Example
	for i := range 1200 {
		examples = append(examples, data.Example{Source: fmt.Sprint(i / 2), Answer: fmt.Sprint(i)})
	}
	some := spread(examples, true)
	for i := 0; i < len(some); i += 2 {
		if some[i].Source != some[i+1].Source {
			t.Fatalf("spread chose %v without the other example of its source", some[i])
		}
	}
	if len(some) != 2*judged || some[len(some)-1].Source != "598" || len(spread(examples, false)) != judged || len(spread(examples[:6], false)) != 6 {
		t.Errorf("spread chose %d of %d examples, want %d; the last is %v, want one of source 598", len(some), len(examples), 2*judged, some[len(some)-1])
	}
	for i := range examples {
		examples[i].Source += strings.Repeat("x", 2000)
	}
	if n := len(spread(examples, false)); n != 99 {
		t.Errorf("spread chose %d sources of about 2,000 bytes, want 99", n)
	}
}

// The comparison highlights the smallest losses and the largest accuracies, unless they can't be compared.
func TestCompareMarksTheBest(t *testing.T) {
	scored := func(loss, accuracy float64, change func(r *task.Run)) *Run {
		r := made(3, func(_ int, c *train.Check) {
			c.TrainLoss, c.ValLoss, c.Metrics["val_accuracy"] = loss, 2-loss, accuracy
		})
		if change != nil {
			change(r)
		}
		return FromTask(fmt.Sprint("runs/", loss), r)
	}
	plain, sure, better := scored(0.5, 0.5, nil), scored(0.25, 0.75, nil), scored(0.75, 0.75, nil)
	unvalidated := scored(0.7, math.NaN(), func(r *task.Run) {
		for i := range r.History {
			r.History[i].Validated = false
		}
	})
	smooth := scored(0.6, 0.25, func(r *task.Run) { r.Config.Training.LabelSmoothing = 0.1 })
	other := scored(0.1, 0.9, func(r *task.Run) { r.Config.Task.Name = "sort" })
	bytePairs := scored(0.1, 0.9, func(r *task.Run) { r.Config.Data.SourceUnits = tokenizer.BPE })
	for name, c := range map[string]struct {
		runs []*Run
		want [][2]int
	}{
		"three":         {[]*Run{plain, sure, better, unvalidated}, [][2]int{{2, 1}, {1, 2}, {2, 2}, {1, 3}}},
		"smoothed":      {[]*Run{plain, smooth}, [][2]int{{1, 1}, {0, 2}}},
		"one validated": {[]*Run{plain, unvalidated}, [][2]int{{0, 3}}},
		"one":           {[]*Run{plain}, nil},
		"other task":    {[]*Run{plain, other}, nil},
		"other units":   {[]*Run{plain, bytePairs}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := scores(c.runs, names(c.runs)); !slices.Equal(got.Bests, c.want) {
				t.Errorf("the rows and columns of the best values are %v, want %v", got.Bests, c.want)
			}
			var page strings.Builder
			must.Do(t, Compare(&page, c.runs))
			if n := strings.Count(page.String(), `<b class="kept">`); n != len(c.want) || strings.Contains(page.String(), "is bold") != (n > 0) {
				t.Errorf("the page highlights %d values, want %d, and to say so", n, len(c.want))
			}
		})
	}
}

// The best run comes first, and what is the same for all runs isn't in the table.
func TestCompareSorts(t *testing.T) {
	scored := func(name string, accuracy, f1 float64, monitor string) *Run {
		r := made(3, func(_ int, c *train.Check) {
			c.Metrics["val_accuracy"], c.Metrics["val_macro_f1"] = accuracy, f1
		})
		r.Config.Training.Stopping.Monitor, r.Config.Training.Stopping.Mode = monitor, "max"
		return FromTask("runs/"+name, r)
	}
	for name, c := range map[string]struct {
		monitors [3]string
		order    []string
		columns  []string
	}{
		"loss":     {[3]string{}, []string{"b", "c", "a"}, []string{"run", "validation loss", "validation accuracy", "training loss"}},
		"macro F1": {[3]string{"val_macro_f1", "val_macro_f1", "val_macro_f1"}, []string{"c", "a", "b"}, []string{"run", "validation macro F1", "validation loss", "validation accuracy", "training loss"}},
		"differ":   {[3]string{"val_macro_f1", "", "val_accuracy"}, []string{"b", "c", "a"}, []string{"run", "validation loss", "validation accuracy", "training loss"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := []*Run{scored("a", 0.5, 0.4, c.monitors[0]), scored("b", 0.7, 0.3, c.monitors[1]), scored("c", 0.6, 0.5, c.monitors[2])}
			order, _ := Sorted(runs)
			if got := names(order); !slices.Equal(got, c.order) || runs[0].name() != "a" {
				t.Errorf("the runs have the order %q, want %q, and the argument unchanged", got, c.order)
			}
			table, shared := scores(order, names(order))
			if !slices.Equal(table.Columns, c.columns) || !slices.Contains(shared, row{"epochs", "3"}) || len(shared) != 7 {
				t.Errorf("the table has the columns %q, want %q; the shared values are %v, want 7, one of them epochs", table.Columns, c.columns, shared)
			}
			var page strings.Builder
			must.Do(t, Compare(&page, runs))
			wantIn(t, page.String(), []string{"<bdi>" + c.order[0] + "</bdi>, <bdi>" + c.order[1] + "</bdi>", "The same for all runs: weights from"}, nil)
		})
	}
}

func TestCompare(t *testing.T) {
	finished, other := made(3, nil), made(5, func(_ int, c *train.Check) {
		c.Validated, c.Metrics = false, map[string]float64{"train_accuracy": 1}
	})
	finished.Summary = &task.Summary{Params: 123, Because: "the limit of 3 epochs is reached"}
	other.Config.Training.Optimizer.LearningRate, other.Config.Model.Dim = 0.5, 7
	a, b := FromTask("runs/made", finished), FromTask("runs/<b>", other)
	var s strings.Builder
	must.Do(t, Compare(&s, []*Run{a, b}))
	wantIn(t, s.String(), []string{"made", "&lt;b&gt;", "Validation loss, nats", "Validation accuracy", "<td><bdi>123</bdi></td>", "not finished", "model dim", "training optimizer learning rate", "<td><bdi>0.5</bdi></td>"}, []string{"<b>"})
	differ, err := differences([]*Run{a, b})
	if err != nil || len(differ) != 2 || !slices.Equal(differ[0].Values, []string{"0", "7"}) {
		t.Errorf("the settings that differ are %v, %v, want two: one is 0 and 7", differ, err)
	}
	b.dir = "other/made"
	if got := names([]*Run{a, b}); !slices.Equal(got, []string{"runs/made", "other/made"}) {
		t.Errorf("two folders with the same name are called %q, want their paths", got)
	}
	if charts := compared([]*Run{a, b}, []string{"a", "b"}); charts[0].Title != "Validation loss, nats" || len(charts[0].Series) != 2 || len(charts[0].Series[1].X) != 0 || len(charts[1].Series[1].X) != 5 {
		t.Errorf("the charts are %+v, want a curve of run b only in the second one", charts)
	}
}

// The headline has the monitored metric before the score, and beside both the value of the most frequent label.
func TestMonitoredTiles(t *testing.T) {
	r := &Run{
		Config:       train.Config{Stopping: train.StoppingConfig{Monitor: "val_recall[odd]", Mode: "max"}},
		kind:         judge.Kind{Right: "right"},
		mostFrequent: func(metric string) (string, float64, bool) { return "even", 0.9, metric == "accuracy" },
	}
	r.kind.Score.Name, r.kind.Score.Share = "accuracy", true
	c := train.Check{Validated: true, Metrics: map[string]float64{"val_accuracy": 0.95, "val_recall[odd]": 0.4}}
	want := []tile{{"40.0 %", "validation recall of odd"}, {"95.0 %", "validation accuracy"}, {"90.0 %", "accuracy of always answering even"}}
	if got := r.scoreTiles(c); !slices.Equal(got, want) {
		t.Errorf("the tiles are %v, want %v", got, want)
	}
	r.Config.Stopping.Monitor = "val_loss"
	if got := r.scoreTiles(c); !slices.Equal(got, want[1:]) {
		t.Errorf("without another metric, the tiles are %v, want %v", got, want[1:])
	}
}

func TestSpoken(t *testing.T) {
	for name, want := range map[string]string{
		"val_macro_f1": "Val macro F1", "r2": "R²", "exact_match": "Exact match",
		"average_precision[not_spam]": "Average precision of not_spam", "f1[a\nb]": `F1 of a\nb`,
	} {
		if got := capital(name); got != want {
			t.Errorf("%s is called %q, want %q", name, got, want)
		}
	}
}
