package task

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train/task/judge"
)

// animals returns n rows of words, some of which are labels. The label gnu is rare.
func animals(n int) (texts []string, labels [][]string) {
	rng := rand.New(rand.NewPCG(3, 4))
	words := []string{"cat", "dog", "owl", "a", "the", "sees", "runs", "sleeps"}
	for i := range n {
		var some []string
		for range 1 + rng.IntN(5) {
			some = append(some, words[rng.IntN(len(words))])
		}
		if i%40 == 7 {
			some = append(some, "gnu")
		}
		found := []string{}
		for _, word := range []string{"owl", "cat", "gnu", "dog"} {
			if slices.Contains(some, word) != (rng.IntN(20) == 0) {
				found = append(found, word)
			}
		}
		texts, labels = append(texts, strings.Join(some, " ")), append(labels, found)
	}
	return texts, labels
}

// labelFile returns the configuration of a task for the rows in a file of this name.
func labelFile(t *testing.T, file string, texts []string, labels [][]string) Config {
	t.Helper()
	var s strings.Builder
	if strings.HasSuffix(file, ".csv") {
		s.WriteString("text,tags\n")
	}
	for i, text := range texts {
		if strings.HasSuffix(file, ".csv") {
			fmt.Fprintf(&s, "%s,%s\n", text, strings.Join(labels[i], "; "))
			continue
		}
		line := must.Get(json.Marshal(map[string]any{"text": text, "tags": labels[i]}))(t)
		s.Write(append(line, '\n'))
	}
	c := withFile(t, "classification", file, s.String())
	c.Data.SourceUnits = tokenizer.Words
	return c
}

// Arrays in JSONL and a separator in CSV make the same model of several labels. It answers with the thresholds and the
// mixture of the run, also when it is opened, and after an interruption. Its scores are those of its answers.
func TestMultiLabel(t *testing.T) {
	t.Parallel()
	texts, labels := animals(400)
	c := labelFile(t, "x.jsonl", texts, labels)
	task, dir := trained(t, c)
	if rule := task.Config.Task; rule.Kind != data.KindMultiLabel || rule.Name != "multilabel" || rule.Separator != "|" || !slices.Equal(rule.Classes, []string{"cat", "dog", "gnu", "owl"}) {
		t.Fatalf("the rule is %+v", rule)
	}
	description := task.DescribeData()
	for _, want := range []string{"training labels: ", "per row", "few validation rows: gnu 3"} {
		if !strings.Contains(description, want) {
			t.Errorf("the description lacks %q:\n%s", want, description)
		}
	}
	m := must.Get(Open(dir))(t)
	if m.Mixture != task.Mixture || !slices.Equal(m.Thresholds, task.Thresholds) || len(m.Thresholds) != 4 || !slices.Equal(m.Linear.Thresholds, task.Linear.Thresholds) {
		t.Errorf("opened, the mixture is %+v with thresholds %v, want %+v with %v", m.Mixture, m.Thresholds, task.Mixture, task.Thresholds)
	}
	answers := must.Get(m.PredictAll(t.Context(), []string{"the cat sees a dog", "a cat"}, PredictOptions{Top: 2}))(t)
	for _, a := range answers {
		checkLabelScores(t, m, a, 2)
	}
	for _, a := range must.Get(m.PredictAll(t.Context(), []string{"the cat sees a dog"}, PredictOptions{Top: 9}))(t) {
		checkLabelScores(t, m, a, 4) // there are no more labels
	}
	if got := answers[0].Text; got != "cat|dog" && got != "dog|cat" {
		t.Errorf("the answer is %q", got)
	}
	r := must.Get(judge.Answers(t.Context(), m, task.Examples(), PredictOptions{}))(t)
	finished := must.Get(ReadRun(dir))(t)
	for name, value := range r.Values() {
		if math.Abs(finished.Summary.Answers[name]-value) > 1e-9 || value < 0.5 {
			t.Errorf("%s is %v in the summary, and %v of the opened model", name, finished.Summary.Answers[name], value)
		}
	}
	if values := must.Get(judge.Baseline(t.Context(), m, task.Examples()))(t).Values(); values["micro_f1"] != finished.Baseline["micro_f1"] || values["micro_f1"] < 0.8 {
		t.Errorf("the baseline has %v, in the summary %v", values, finished.Baseline)
	}
	s := judge.ScoresOf(m, nil, r)
	if s.Micro == nil || *s.Value != s.Micro.F1 || s.Interval[0] >= *s.Value || s.Interval[1] <= *s.Value || s.AveragePrecision == nil || s.SubsetAccuracy == nil || len(s.Classes) != 4 {
		t.Errorf("the scores are %+v", s)
	}
	network := must.Get(Open(dir))(t)
	must.Do(t, network.UseNetwork())
	if network.Thresholds != nil {
		t.Error("the network alone has the thresholds of the mixture")
	}

	wantResumed(t, c, 30, dir, runfolder.BaselineFile)

	c = labelFile(t, "x.csv", texts, labels)
	c.Task.Separator = ";"
	other := made(t, c)
	if rule := other.Config.Task; rule.Kind != data.KindMultiLabel || rule.Separator != ";" || !slices.Equal(rule.Classes, task.Config.Task.Classes) {
		t.Fatalf("the rule of the CSV file is %+v", rule)
	}
	for i, e := range other.Examples() {
		if want := task.Examples()[i]; e.Source != want.Source || !slices.Equal(other.Config.Task.Labels(e.Answer), task.Config.Task.Labels(want.Answer)) {
			t.Fatalf("row %d is %v, want %v", i, e, want)
		}
	}
}

// checkLabelScores checks that an answer has the labels that reach their thresholds, and the n likeliest ones.
func checkLabelScores(t *testing.T, m *Model, a Answer, n int) {
	t.Helper()
	if a.Err != nil || len(a.Scores) != len(m.Config.Task.Classes) || len(a.Top) != n || a.Text != strings.Join(a.Labels, m.Config.Task.Separator) {
		t.Fatalf("the answer is %+v", a)
	}
	chosen, logProb := []string{}, 0.0
	for i, s := range a.Scores {
		threshold := 0.5
		if m.Thresholds != nil {
			threshold = m.Thresholds[slices.Index(m.Config.Task.Classes, s.Label)]
		}
		if s.Chosen != (s.Score >= threshold) || i > 0 && s.Score > a.Scores[i-1].Score {
			t.Errorf("%+v has the threshold %v and follows others in %+v", s, threshold, a.Scores)
		}
		p := 1 - s.Score
		if s.Chosen {
			chosen, p = append(chosen, s.Label), s.Score
		}
		if logProb += math.Log(p); i < n && (a.Top[i].Text != s.Label || math.Abs(math.Exp(a.Top[i].LogProb)-s.Score) > 1e-9) {
			t.Errorf("alternative %d is %+v, want %+v", i, a.Top[i], s)
		}
	}
	if !slices.Equal(chosen, a.Labels) || math.Abs(logProb-a.LogProb) > 1e-6 {
		t.Errorf("labels %q with log probability %v, want %q with %v", a.Labels, a.LogProb, chosen, logProb)
	}
	content := string(must.Get(json.Marshal(a))(t))
	if !strings.Contains(content, `"answer":[`) || !strings.Contains(content, `"scores":[{"label":`) || strings.Contains(strings.Split(content, "alternatives")[0], "probability") {
		t.Errorf("as JSON: %s", content)
	}
}

// A published model of several labels answers with the logistic functions of its logits. A run that begins from it
// keeps its head if the labels are the same, and is exported with its thresholds.
func TestPublishedLabels(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert-several", "llama-several"} {
		dir := publishedFolder(t, name)
		m, reference := must.Get(Open(dir))(t), must.Get(pretrained.Open(dir, tensor.Float32))(t)
		if m.Config.Task.Kind != data.KindMultiLabel || !slices.Equal(m.Config.Task.Classes, reference.Labels) {
			t.Fatalf("%s: the rule is %+v", name, m.Config.Task)
		}
		for _, a := range must.Get(m.PredictAll(t.Context(), []string{"a text", "another one"}, PredictOptions{Top: 3}))(t) {
			if checkLabelScores(t, m, a, 3); reference.Model.Segments > 0 { // which reference leaves out here
				continue
			}
			ids := must.Get(m.Config.Task.Source.Encode(a.Input))(t)
			logits := outputOf(t, len(ids), func(b *layers.Build, x *G.Node) (*G.Node, error) {
				return reference.Classifier.Forward(b, x, layers.Mask{})
			}, ids)
			for _, s := range a.Scores {
				if want := 1 / (1 + math.Exp(-float64(logits[slices.Index(reference.Labels, s.Label)]))); math.Abs(s.Score-want) > 1e-6 {
					t.Errorf("%s: %q has the score %v of %s, want %v", name, a.Input, s.Score, s.Label, want)
				}
			}
		}
	}
	texts, labels := animals(80)
	for i, row := range labels {
		for k, label := range row {
			labels[i][k] = map[string]string{"owl": "LABEL_0", "cat": "LABEL_1", "gnu": "LABEL_2", "dog": "LABEL_2"}[label]
		}
	}
	c := labelFile(t, "x.jsonl", texts, labels)
	must.Do(t, c.StartFrom(publishedFolder(t, "llama-several")))
	c.Mix, c.Training.MaxEpochs = false, 1
	task, dir := trained(t, c)
	if len(task.Loaded.Kept)+len(task.Loaded.Unused) > 0 {
		t.Errorf("from a model of the same labels: %+v", task.Loaded)
	}
	folder := filepath.Join(t.TempDir(), "exported")
	must.Do(t, task.Export(folder))
	config := string(must.Get(os.ReadFile(filepath.Join(folder, "config.json")))(t))
	if !strings.Contains(config, `"problem_type": "multi_label_classification"`) || !strings.Contains(config, `"thresholds": {`) {
		t.Errorf("exported with %s", config)
	}
	wantSame(t, must.Get(Open(folder))(t), must.Get(Open(dir))(t), texts...)
}

// TestLabelsOfOtherForms refuses rows whose labels would be learned as something else.
func TestLabelsOfOtherForms(t *testing.T) {
	for _, test := range []struct{ file, rows, want string }{
		{"x.jsonl", `{"text": "a", "labels": [0, 1, 0]}` + "\n" + `{"text": "b", "labels": [1.0, 0.0, 0.0]}` + "\n", `the labels ["0" "1" "0"] are a number for each label of the file`},
		{"x.csv", "a,\"[1, 1, 1]\"\n", `the labels ["1" "1" "1"] are a number`},
		{"x.csv", "a,\"red, blue\"\nb,\"blue, red\"\nc,red\n", `seems to be several labels: set task.separator to ","`},
	} {
		c := withFile(t, "multilabel", test.file, strings.Repeat(test.rows, 12))
		must.Refuse(New(c))(t, test.want)
	}
	names := withFile(t, "multilabel", "x.jsonl", strings.Repeat(`{"text": "a", "labels": [0, 1]}`+"\n"+`{"text": "b", "labels": ["red, blue", "blue, red"]}`+"\n", 12))
	must.Get(New(names))(t).Close()
}
