package task

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// A model of masked text must learn the same after an interruption and with any number of workers. It must fill masks,
// embed texts, and be a start for classification.
func TestMaskedText(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	c := small(t, "mlm")
	c.Data.SourceUnits, c.Data.VocabSize = tokenizer.BPE, 280
	c.Training.StepsPerEpoch, c.Training.Optimizer.LearningRate = 80, 1e-2
	task, dir := trained(t, c)
	again := wantResumed(t, c, 45, dir)
	first := must.Get(task.set.validation().batch([]int{0, 1, 2}))(t)
	second, err := again.set.validation().batch([]int{2})
	if err != nil || !slices.Equal(second.Inputs, first.Rows(2, 3).Inputs) || !slices.Equal(second.Targets, first.Rows(2, 3).Targets) {
		t.Errorf("a validation window has other masks in another batch: %v, %v, want %v", second, err, first.Rows(2, 3))
	}
	score, err := task.Evaluate(t.Context())
	if err != nil || score.Value < 0.5 || score.Total != 2*task.set.(*textSet).windows || score.Characters != 0 || !strings.Contains(score.String(), " masked tokens predicted)") {
		t.Errorf("got %+v, %v, want more than half of 2 masked tokens in each of %d windows", score, err, task.set.(*textSet).windows)
	}
	if e := task.Config.Task.Example; !strings.HasSuffix(e, " [MASK]") || task.Config.Task.About != "the masked tokens of a file" {
		t.Errorf("got %+v, want an example that ends with a mask", task.Config.Task)
	}
	m := must.Get(Open(dir))(t)
	for _, input := range []string{"The quick brown [MASK]", "[MASK] quick brown fox", "no mask"} {
		answers := must.Get(m.PredictAll(t.Context(), []string{input}, PredictOptions{Top: 3}))(t)
		switch a := answers[0]; {
		case input == "no mask":
			must.Fail(t, a.Err, "the input has no mask: write [MASK]")
		case a.Err != nil || !strings.HasPrefix(a.Text, strings.Split(input, "[MASK]")[0]) || strings.Contains(a.Text, "[MASK]") || len(a.Top) != 3 || a.Top[0].Text != a.Text:
			t.Errorf("%q: got %+v, want a filled mask and 3 alternatives", input, a)
		}
	}
	vectors, tokens, err := m.Embed(t.Context(), []string{"The quick brown fox", strings.Repeat("The lazy dog ", 50)})
	if err != nil || len(vectors[0]) != c.Model.Dim || tokens > 2*c.Task.MaxLen {
		t.Errorf("got %v of %d tokens, %v, want two vectors of width %d", vectors, tokens, err, c.Model.Dim)
	}

	classes := small(t, "classification")
	must.Do(t, classes.StartFrom(dir))
	tuned := made(t, classes)
	if want := []string{"head.weight", "head.bias"}; !slices.Equal(tuned.Loaded.Kept, want) || len(tuned.Loaded.Unused) != len(want) {
		t.Errorf("classification starts with %+v, want only a new head", tuned.Loaded)
	}
	if got, want := tuned.Params.Get("encoder.embedding.weight"), m.Params.Get("embedding.weight"); !slices.Equal(got.Value.Float32s(), want.Value.Float32s()) {
		t.Error("classification starts with another embedding")
	}
	run(t, tuned, filepath.Join(t.TempDir(), "tuned"), train.RunOptions{})
}
