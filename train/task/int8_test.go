package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
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
		must.Do(t, err)
		return fmt.Sprint(vectors)
	}
	answers := must.Get(m.PredictAll(t.Context(), []string{"abc", "cab"}, PredictOptions{}))(t)
	return fmt.Sprint(answers)
}

// wantInt8 compares the model in dir, opened with int8 weights, with the same model quantised afterwards.
func wantInt8(t *testing.T, dir string) {
	t.Helper()
	m := must.Get(OpenAs(dir, "", model.Int8Weights))(t)
	after := must.Get(Open(dir))(t)
	whole := ""
	if m.Config.Describe().Predict != nil {
		whole = told(t, after)
		after = must.Get(Open(dir))(t) // a model that has been used keeps its graphs
	}
	must.Do(t, after.Params.Quantize())
	got, want := told(t, m), told(t, after)
	if got != want {
		t.Errorf("%s: opened with int8 weights, the model answers %.200s, want %.200s", dir, got, want)
	}
	if m.Config.Describe().Predict != nil && got == whole {
		t.Errorf("%s: int8 weights change nothing", dir)
	}
	must.Fail(t, m.Params.Save(filepath.Join(t.TempDir(), "weights"), nil), "has only int8 values")
}

// Models of every architecture, and runs with and without an adapter, must open with int8 weights, and can't be
// exported then.
func TestInt8Weights(t *testing.T) {
	t.Parallel()
	for _, e := range must.Get(os.ReadDir("../../layers/pretrained/testdata"))(t) {
		_, variant, _ := strings.Cut(e.Name(), "-")
		if e.IsDir() && (variant == "" || variant == "states") && !testseed.LeftOut(e.Name()) {
			wantInt8(t, publishedFolder(t, e.Name()))
		}
	}
	_, run := trained(t, small(t, "reverse"))
	wantInt8(t, run)
	_, run = trained(t, fromPublished(t, data.KindText, publishedFolder(t, "gpt2"), "lora"))
	wantInt8(t, run)
	_, run = trained(t, fromPublished(t, data.KindClassification, publishedFolder(t, "bert-classes"), "head"))
	m := must.Get(OpenAs(run, "", model.Int8Weights))(t)
	if m.Mixture.Temperature <= 1 {
		t.Fatal("the temperature is 1, so Export doesn't change the head")
	}
	must.Fail(t, m.Export(filepath.Join(t.TempDir(), "new")), "has only int8 values")
	must.Refuse(OpenAs(run, "", "int4"))(t, `no kind of weights "int4"`, "float32, int8")
}
