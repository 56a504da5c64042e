package task

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/model"
)

// told returns a model's answer to a text, as a text.
func told(t *testing.T, m *Model) string {
	t.Helper()
	switch d := m.Config.Describe(); {
	case d.Generate == nil:
		return continued(t, m, "abc", GenerateOptions{MaxTokens: 6})
	case d.Predict != nil:
		vectors, _, err := m.Embed(t.Context(), []string{"abc", "a longer text"})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(vectors)
	}
	answers, err := m.PredictAll(t.Context(), []string{"abc", "cab"}, PredictOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(answers)
}

// wantInt8 compares the model in dir, opened with int8 weights, with the same model quantised afterwards.
func wantInt8(t *testing.T, dir string) {
	t.Helper()
	m, err := OpenAs(dir, "", model.Int8Weights)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := ""
	if m.Config.Describe().Predict != nil {
		whole = told(t, after)
		if after, err = Open(dir); err != nil { // a model that has been used keeps its graphs
			t.Fatal(err)
		}
	}
	if err := after.Params.Quantize(); err != nil {
		t.Fatal(err)
	}
	got, want := told(t, m), told(t, after)
	if got != want {
		t.Errorf("%s: opened with int8 weights, the model answers %.200s, want %.200s", dir, got, want)
	}
	if m.Config.Describe().Predict != nil && got == whole {
		t.Errorf("%s: int8 weights change nothing", dir)
	}
	wantError(t, m.Params.Save(filepath.Join(t.TempDir(), "weights"), nil), "has only int8 values")
}

// Models of every architecture, and runs with and without an adapter, must open with int8 weights, and can't be
// exported then.
func TestInt8Weights(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../../layers/pretrained/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && (!testing.Short() || e.Name() == "llama" || e.Name() == "bert-states") {
			wantInt8(t, publishedFolder(t, e.Name()))
		}
	}
	_, run := trained(t, small(t, "reverse"))
	wantInt8(t, run)
	_, run = trained(t, fromPublished(t, data.KindText, publishedFolder(t, "gpt2"), "lora"))
	wantInt8(t, run)
	_, run = trained(t, fromPublished(t, data.KindClassification, publishedFolder(t, "bert-classes"), "head"))
	m, err := OpenAs(run, "", model.Int8Weights)
	if err != nil {
		t.Fatal(err)
	}
	if m.Mixture.Temperature <= 1 {
		t.Fatal("the temperature is 1, so Export doesn't change the head")
	}
	wantError(t, m.Export(filepath.Join(t.TempDir(), "new")), "has only int8 values")
	_, err = OpenAs(run, "", "int4")
	wantError(t, err, `no kind of weights "int4"`, "float32, int8")
}
