package train_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train"
)

// A checkpoint of another run, or whose state says a thing twice, isn't resumed.
func TestCheckpointOfAnotherRun(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "c")
	fit := func(run string, resume bool) error {
		_, err := train.Fit(t.Context(), digits(t, 1), train.Config{MaxEpochs: 1, MaxSteps: 5, Checkpoint: checkpoint, Resume: resume, Run: run})
		return err
	}
	if err := fit("a", false); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"b", ""} {
		if err := fit(other, true); err == nil || !strings.Contains(err.Error(), checkpoint+` belongs to another run: to "a", not to "`+other+`"`) {
			t.Errorf("resumed as %q: %v", other, err)
		}
	}
	if err := fit("a", true); err != nil {
		t.Error(err)
	}

	tensors, metadata, err := safetensors.ReadFile(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	metadata["heed.state"] = `{"step":1,` + metadata["heed.state"][1:]
	err = atomicfile.WriteFile(checkpoint, func(w io.Writer) error { return safetensors.Write(w, tensors, metadata) })
	if err != nil {
		t.Fatal(err)
	}
	if err := fit("a", true); err == nil || !strings.Contains(err.Error(), `"step" is given twice`) {
		t.Errorf("resumed from a state that says it twice: %v", err)
	}
}
