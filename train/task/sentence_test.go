package task

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// sentenceFolder makes a whole folder of one in testdata/sentence, with its weights.
func sentenceFolder(t *testing.T, name string) string {
	dir, home := t.TempDir(), filepath.Join("testdata", "sentence")
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join(home, name))))
	_, kind, _ := strings.Cut(name, "-")
	weights := must.Get(os.ReadFile(filepath.Join(home, kind+".safetensors")))(t)
	write(t, filepath.Join(dir, "model.safetensors"), string(weights))
	return dir
}

// Folders that versions 2, 3, 5 and 6 of sentence-transformers wrote must give its vectors and scores, also for texts
// that are cut.
func TestSentenceTransformers(t *testing.T) {
	content := must.Get(os.ReadFile("testdata/sentence/answers.json"))(t)
	var folders map[string]struct {
		Inputs []string
		Values [][]float64
	}
	if err := json.Unmarshal(content, &folders); err != nil || len(folders) < 10 {
		t.Fatal(len(folders), err)
	}
	for name, want := range folders {
		t.Run(name, func(t *testing.T) {
			m := must.Get(Open(sentenceFolder(t, name)))(t)
			if cut := m.Config.Describe().Cut; (cut == "the beginning") != (name == "left-cross") {
				t.Errorf("cut: %s", cut)
			}
			compareAnswers(t, m, strings.HasSuffix(name, "-embed"), want.Inputs, want.Values)
			for i, input := range want.Inputs {
				query, document, _ := strings.Cut(input, "\t")
				ranked, _, err := m.Rank(t.Context(), query, []string{document}, 0)
				if cross := strings.HasSuffix(name, "-cross"); cross != (err == nil) || cross && math.Abs(ranked[0].Score-want.Values[i][0]) > 1e-6 {
					t.Errorf("%q: %+v, %v, want the score %g", input, ranked, err, want.Values[i][0])
				}
			}
		})
	}
}

// compareAnswers compares the vectors that a model embeds texts in, or its numbers or the probabilities of its labels,
// with expected values.
func compareAnswers(t *testing.T, m *Model, embeds bool, inputs []string, want [][]float64) {
	t.Helper()
	vectors, _, err := m.Embed(t.Context(), inputs)
	if (err == nil) != embeds || !embeds && !strings.Contains(err.Error(), "heed predict") {
		t.Errorf("Embed: %v", err)
	}
	labels := m.Config.Task.Classes
	answers, err := m.PredictAll(t.Context(), inputs, PredictOptions{Top: len(labels)})
	if (err == nil) == embeds {
		t.Fatalf("PredictAll: %v", err)
	}
	for i, values := range want {
		for j, x := range values {
			var got float64
			switch {
			case embeds:
				got = float64(vectors[i][j])
			case labels == nil:
				got = *answers[i].Number
			default:
				named := func(a Alternative) bool { return a.Text == labels[j] }
				got = math.Exp(answers[i].Top[slices.IndexFunc(answers[i].Top, named)].LogProb)
			}
			if !(math.Abs(got-x) < 6e-6) {
				t.Errorf("%q: value %d is %g, want %g", inputs[i], j, got, x)
			}
		}
	}
}

// A CrossEncoder must be exported with the function of its scores, and a model that began as one without it.
func TestExportScores(t *testing.T) {
	opened := must.Get(Open(sentenceFolder(t, "6-cross")))(t)
	c := withFile(t, "regression", "rows.tsv", strings.Repeat("the cat\t-7\nthe dog\t-9\na cat\t-6\na dog\t-8\n", 10))
	must.Do(t, c.StartFrom(sentenceFolder(t, "6-cross")))
	c.Mix, c.Training.MaxEpochs = false, 1
	for _, m := range []*Model{opened, fitted(t, c).Model} {
		dir := filepath.Join(t.TempDir(), "new")
		must.Do(t, m.Export(dir))
		again := must.Get(Open(dir))(t)
		got, err := again.PredictAll(t.Context(), []string{"the cat"}, PredictOptions{})
		want, failed := m.PredictAll(t.Context(), []string{"the cat"}, PredictOptions{})
		if err != nil || failed != nil || math.Abs(*got[0].Number-*want[0].Number) > 1e-4 || (m == opened) != (*want[0].Number > 0) {
			t.Errorf("got %+v, %v, want %+v, %v", got, err, want, failed)
		}
	}
}

// A run that began as a folder with a Dense module trains it and exports it. A run for masked text keeps it.
func TestTuneDense(t *testing.T) {
	pairs := strings.Repeat("the cat\tis red\nthe dog\tis blue\na cat\tsat on\na dog\tran far\n", 10)
	for _, kind := range []string{"embed", "mlm"} {
		from := sentenceFolder(t, "dense-embed")
		opened := must.Get(Open(from))(t)
		c := withFile(t, kind, "rows.tsv", pairs)
		must.Do(t, c.StartFrom(from))
		c.Training.MaxEpochs, c.Training.BatchSize = 1, 4
		task, run := trained(t, c)
		before, after := opened.Params.Get("dense.weight").Value.Float32s(), task.Params.Get("dense.weight").Value.Float32s()
		if moved := !slices.Equal(before, after); moved != (kind == "embed") || len(task.Loaded.Kept) > 0 {
			t.Errorf("%s: the weights have changed: %t; new are %q", kind, moved, task.Loaded.Kept)
		}
		m, dir := must.Get(Open(run))(t), filepath.Join(t.TempDir(), "new")
		again := m
		if kind == "embed" { // mlm has made a head that BERT lacks
			must.Do(t, m.Export(dir))
			again = must.Get(Open(dir))(t)
		}
		got, _, err := again.Embed(t.Context(), []string{"the cat sat"})
		want, _, failed := m.Embed(t.Context(), []string{"the cat sat"})
		if err != nil || failed != nil || len(got[0]) != 6 || !slices.Equal(got[0], want[0]) {
			t.Errorf("%s: the exported model embeds as %v, %v, the run as %v, %v", kind, got, err, want, failed)
		}
	}
}
