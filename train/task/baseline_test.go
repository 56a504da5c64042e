package task

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear/beside"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// mixedTasks returns small tasks of the kinds whose answers are mixed with those of a linear model.
func mixedTasks(t *testing.T, do func(t *testing.T, c Config)) {
	for _, kind := range []data.Kind{data.KindClassification, data.KindRegression, data.KindTagging} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := small(t, string(kind))
			if !c.Mix {
				t.Fatal("the default isn't mixed")
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
		must.Do(t, c.StartFrom(publishedFolder(t, "bert")))
		c.Training.BatchSize, c.Training.MaxEpochs = 16, 2
		do(t, c)
	})
}

// New decides whether a linear model would be too large by the number of texts that it learns: for tags, the symbols.
func TestLinearTexts(t *testing.T) {
	t.Parallel()
	mixedTasks(t, func(t *testing.T, c Config) {
		task := made(t, c)
		s := task.set.(*rowSet)
		texts, starts, err := beside.Texts(t.Context(), &task.Config.Task, linearRows(s.Train), nil)
		must.Do(t, err)
		if got := s.linearTexts(&task.Config); got != texts.N && !(c.Published() && got > texts.N) || starts[s.Train.Len()] != texts.N {
			t.Errorf("New counts %d texts, and the linear model learns %d", got, texts.N)
		}
	})
}

// With the weight 1, the linear model answers alone, as the report's baseline does, and with 0 the network. With a
// published start, the linear model reads vectors.
func TestMixtureAtItsEnds(t *testing.T) {
	t.Parallel()
	mixedTasks(t, func(t *testing.T, c Config) {
		task := made(t, c)
		must.Do(t, task.fitBaseline(t.Context()))
		l := task.Linear
		if got := l.Width(); got != 0 && got != c.Model.Dim || (got > 0) != (c.From.Dir != "") {
			t.Errorf("the vectors have %d numbers", got)
		}
		network := evaluatedNetwork(t, task)
		for weight, want := range map[float64]map[string]float64{0: network, 1: l.Values} {
			task.Mixture = mixture{Linear: weight}
			s := evaluated(t, task)
			r := judged(t, task, task.Examples(), PredictOptions{})
			got := r.Values()
			if math.Abs(s.Value-want[s.Name]) > 1e-5 || math.Abs(got[s.Name]-want[s.Name]) > 1e-5 {
				t.Errorf("with the weight %v, the score is %v and the answers have %v, want %v", weight, s.Value, got, want)
			}
			if fmt.Sprint(r.Baseline) != fmt.Sprint(l.Values) || !strings.Contains(r.String(), "Baseline: a linear model of words") {
				t.Errorf("the report is\n%s", r)
			}
			if loss := network["loss"]; weight == 0 && math.Abs(s.Loss-loss) > 1e-4 {
				t.Errorf("the network's loss is %v, want %v", s.Loss, loss)
			}
		}
	})
}

// evaluatedNetwork returns the validation values of a task's network alone.
func evaluatedNetwork(t testing.TB, task *Task) map[string]float64 {
	t.Helper()
	values := must.Get(train.Evaluate(t.Context(), task.Problem()))(t)
	for name, value := range values {
		values[strings.TrimPrefix(name, "val_")] = value
	}
	return values
}

// A run keeps its baseline: a resumed run and the opened model have the same bytes and answers.
func TestBaselineInTheFolder(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	mixedTasks(t, func(t *testing.T, c Config) {
		whole, dir := trained(t, c)
		resumed := wantResumed(t, c, 5, dir, runfolder.BaselineFile)
		read := must.Get(ReadRun(dir))(t)
		if l := whole.Linear; fmt.Sprint(read.Baseline) != fmt.Sprint(l.Values) {
			t.Errorf("the run has the baseline %v, want %v", read.Baseline, l.Values)
		}
		m := must.Get(Open(dir))(t)
		must.Do(t, resumed.Load(dir)) // Train leaves the last weights
		for _, e := range whole.Examples()[:5] {
			wantSame(t, m, resumed.Model, e.Source)
		}
		// The model can't answer without its baseline, nor with that of another run.
		c.Seed++
		_, other := trained(t, c)
		content := must.Get(os.ReadFile(filepath.Join(other, runfolder.BaselineFile)))(t)
		write(t, filepath.Join(dir, runfolder.BaselineFile), string(content))
		must.Refuse(Open(dir))(t, runfolder.BaselineFile, "baseline of another run")
		write(t, filepath.Join(dir, runfolder.BaselineFile), string(content[:len(content)/2]))
		must.Refuse(Open(dir))(t, runfolder.BaselineFile)
		must.Do(t, os.Remove(filepath.Join(dir, runfolder.BaselineFile)))
		must.Refuse(Open(dir))(t, runfolder.BaselineFile)
	})
}

// Without Mix, the baseline is only for comparison.
func TestNotMixed(t *testing.T) {
	t.Parallel()
	mixedTasks(t, func(t *testing.T, c Config) {
		c.Mix = false
		task, dir := trained(t, c)
		must.Do(t, os.Remove(filepath.Join(dir, runfolder.BaselineFile)))
		m := must.Get(Open(dir))(t)
		must.Refuse(judge.Answers(t.Context(), m, task.Examples(), PredictOptions{}))(t, "baseline.safetensors is missing, and summary.json needs it")
		must.Do(t, task.Load(dir))
		must.Refuse(task.Evaluate(t.Context()))(t, "baseline.safetensors is missing")
		must.Do(t, os.Remove(filepath.Join(dir, runfolder.SummaryFile)))
		m = must.Get(Open(dir))(t)
		if r := judged(t, &Task{Model: m}, task.Examples(), PredictOptions{}); r.Baseline != nil {
			t.Errorf("without the file, the report has the baseline %v", r.Baseline)
		}
	})
	c := small(t, "seq2seq")
	c.Mix = true
	must.Refuse(New(c))(t, "mix", "seq2seq")
}

// A summary has the values of the mixture, and the opened model answers as it says. An interrupted run answers as the
// better one does.
func TestMixtureInTheSummary(t *testing.T) {
	t.Parallel()
	c := withFile(t, "classification", "rows.tsv", labelled(200))
	c.Training.MaxEpochs = 2
	task, dir := trained(t, c) // its baseline is always right
	read := must.Get(ReadRun(dir))(t)
	s := read.Summary
	if s.Linear == nil || *s.Linear < 0.3 || *s.ValScore != s.Answers["accuracy"] || *s.ValScore != 1 || !strings.Contains(task.BesideBaseline(s), "the linear model 1.0000") {
		t.Errorf("the summary is %+v, want the values of the mixture", s)
	}
	m := must.Get(Open(dir))(t)
	if r := judged(t, &Task{Model: m}, task.Examples(), PredictOptions{}); r.Classes.Accuracy() != *s.ValScore || m.Mixture != task.Mixture {
		t.Errorf("the opened model has the accuracy %v and the mixture %+v, want %v and %+v", r.Classes.Accuracy(), m.Mixture, *s.ValScore, task.Mixture)
	}
	part := filepath.Join(t.TempDir(), "part")
	run(t, made(t, c), part, train.RunOptions{MaxSteps: 1})
	if m = must.Get(Open(part))(t); m.Mixture.Linear != 1 {
		t.Errorf("the interrupted run has the mixture %+v, want the linear model alone", m.Mixture)
	}
}

// The mixture of two sides that know different rows is better than both. Few rows leave the weight near the usual one.
func TestMix(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, n := range []int{4, 400} {
		s := sides{width: 3}
		numbers := linearNumbers{}.sides(1)
		for i := range n {
			right, both := random.IntN(3), [2][]float32{}
			for k := range both {
				both[k] = []float32{random.Float32(), random.Float32(), random.Float32()}
				if (i+k)%2 == 0 {
					both[k][right] += 4
				}
			}
			s.add(both[0], both[1], []float64{float64(right)})
			x := random.NormFloat64()
			numbers.add([]float32{float32(x + random.NormFloat64())}, []float32{float32(x + random.NormFloat64())}, []float64{x})
		}
		for _, some := range []*sides{&s, &numbers} {
			best := some.mix(0.5)
			one, other := some.loss(mixture{}, nil), some.loss(mixture{Linear: 1}, nil)
			if n > 4 && some.loss(best, nil) > 0.9*min(one, other) || math.Abs(best.Linear-0.5) > 0.25 {
				t.Errorf("%d rows: the mixture %+v has the loss %v, and the sides %v and %v", n, best, some.loss(best, nil), one, other)
			}
		}
	}
	useless := sides{width: 2}
	for i := range 300 {
		useless.add([]float32{random.Float32() * 9, random.Float32() * 9}, []float32{2 * float32(i%2), 0}, []float64{float64(1 - i%2)})
	}
	if x := useless.mix(0.5); x.Linear < 0.9 {
		t.Errorf("beside noise, the linear model has the weight %v", x.Linear)
	}
	lucky := sides{width: 2} // of 30 rows, the network has 2 more right answers than the linear model
	for i := range 30 {
		lucky.add([]float32{float32(i % 15), 1}, []float32{float32(i % 8), 1}, []float64{0})
	}
	if x := lucky.mix(0.95); x.Linear < 0.7 {
		t.Errorf("two answers changed the weight from 0.95 to %v", x.Linear)
	}
}

// A solved head without a linear model beside it is an ordinary layer: the network computes what the linear model of
// vectors does.
func TestSolvedHead(t *testing.T) {
	t.Parallel()
	for _, kind := range []data.Kind{data.KindClassification, data.KindRegression, data.KindTagging} {
		for _, mix := range []bool{false, true} {
			c := fromPublished(t, kind, publishedFolder(t, "bert"), "head")
			c.Mix = mix
			task, dir := trained(t, c)
			if run, err := ReadRun(dir); err != nil || len(run.History) != 1 || run.Summary == nil {
				t.Fatalf("%s, mix %t: the run is %+v, %v; want one check", kind, mix, run, err)
			}
			m := must.Get(Open(dir))(t)
			if l := m.Linear; mix != (m.Mixture.Linear == 1) || mix && l.Width() != m.Config.Model.Dim {
				t.Errorf("%s, mix %t: the mixture is %+v", kind, mix, m.Mixture)
			}
			want := judged(t, task, task.Examples(), PredictOptions{})
			got := judged(t, &Task{Model: m}, task.Examples(), PredictOptions{})
			if got.String() != want.String() {
				t.Errorf("%s, mix %t: the opened model's report is\n%swant\n%s", kind, mix, got, want)
			}
			solved, _, err := task.fitLinear(t.Context(), must.Get(task.Features())(t), true)
			must.Do(t, err)
			task.Linear = solved
			r := judgedAs(t, task, mixture{Linear: 1})
			if alone := judgedAs(t, task, mixture{}); !mix && fmt.Sprint(r.Values()) != fmt.Sprint(alone.Values()) {
				t.Errorf("%s: the linear model of vectors has %v, and the network with this head %v", kind, r.Values(), alone.Values())
			}
		}
	}
}

// judgedAs returns the report of a mixture on the validation rows.
func judgedAs(t testing.TB, task *Task, x mixture) *Report {
	t.Helper()
	before := task.Mixture
	defer func() { task.Mixture = before }()
	task.Mixture = x
	return judged(t, task, task.Examples(), PredictOptions{})
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
		linear                  float64
		guesses                 bool
		from, want              string
	}{
		{score: 0.75, baseline: 0.5, want: "the model is better by 0.2500\n"},
		{score: 0.75, baseline: 0.75, chance: 1, want: "the model is as good\n"},
		{score: 0.6, baseline: 0.9, want: "worse by 0.3000: more rows help most\n"},
		{score: 0.9, baseline: 0.9375, chance: 0.25, want: "worse by 0.0375" + few + ": more rows help most\n"},
		{score: 0.95, baseline: 0.9375, chance: 1, want: "better by 0.0125" + few + "\n"},
		{score: 1, baseline: 0.95, chance: 0.125, want: "better by 0.0500" + few + "\n"},
		{score: 1, baseline: 1, chance: 1, want: "the model is as good\n"},
		{score: 0.9, baseline: 0.8, linear: 0.3, want: "The network alone has accuracy 0.7000 and the linear model 0.8000. The linear model's weight in the answers is 0.30. Compared with it, the model is better by 0.1000\n"},
		{score: 0.5, baseline: 0.8, guesses: true, want: "worse by 0.3000: it is hardly better than guesses; to compare texts, begin with a published model (--from)\n"},
		{score: 0.55, baseline: 0.5, chance: 0.5, guesses: true, want: few + ": it is hardly better than guesses; to compare texts, begin with a published model (--from)\n"},
		{score: 0.5, baseline: 0.8, guesses: true, from: "bert", want: "worse by 0.3000: more rows help most\n"},
	} {
		s := &Summary{ScoreName: "accuracy", ValScore: &test.score, Baseline: map[string]float64{"accuracy": test.baseline}, Chance: &test.chance, Guesses: test.guesses}
		if s.Best.Metrics = map[string]float64{"val_accuracy": 0.7}; test.linear > 0 {
			s.Linear = &test.linear
		}
		task.Config.From.Dir, task.Config.Mix = test.from, true
		if got := task.BesideBaseline(s); !strings.HasSuffix(got, test.want) {
			t.Errorf("%v beside %v: got %q, want %q at its end", test.score, test.baseline, got, test.want)
		}
	}
	if got := task.BesideBaseline(&Summary{}); got != "" {
		t.Errorf("without a baseline, got %q", got)
	}
	value := 0.6
	task.Config.From.Dir, task.Config.Mix = "", false
	s := &Summary{ScoreName: "accuracy", ValScore: &value, Baseline: map[string]float64{"accuracy": 0.9}}
	if got := task.BesideBaseline(s); !strings.HasSuffix(got, ": more rows help most; --mix mixes the answers of both\n") {
		t.Errorf("got %q, want the advice of --mix", got)
	}
	for _, n := range []int{4, leastRows - 1} {
		must.Refuse(New(withFile(t, "classification", "few.tsv", labelled(n))))(t, "at least 20, got")
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
