package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

// TestRun checks that the program learns to reverse words in a third of its usual number of epochs, and writes its
// picture into a folder that git ignores.
func TestRun(t *testing.T) {
	args := []string{"--epochs", "4"}
	if testing.Short() {
		args = []string{"--epochs", "1"}
	}
	ignored, err := os.ReadFile(filepath.Join("..", "..", ".gitignore"))
	if err != nil || !strings.Contains("\n"+string(ignored), "\n/runs/\n") {
		t.Errorf("git doesn't ignore the folder runs: want the line /runs/ in .gitignore (error: %v), got\n%s", err, ignored)
	}
	t.Chdir(t.TempDir())
	var out strings.Builder
	must.Do(t, run(&out, args))
	golden.Contains(t, out.String(), "Epoch 0: Train=", "attention -> ", "Attention weights of each letter: "+filepath.Join("runs", "heatmap.png")+"\n")
	if !testing.Short() {
		golden.Contains(t, out.String(), "attention -> noitnetta\n")
	}
	if w, h := size(t, filepath.Join("runs", "heatmap.png")); w < 300 || h < 150 {
		t.Errorf("the picture has %d x %d pixels", w, h)
	}
}

// TestOwn checks that more heads make the picture wider, that more blocks make it higher, and that the same seed gives
// the same output.
func TestOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "er", "picture.png")
	args := []string{"--word", "abc", "--out", path, "--epochs", "1", "--heads", "1", "--blocks", "1"}
	golden.Calls(t, run, args, "-epochs", "-blocks", "-heads")
	width, height := size(t, path)
	must.Do(t, run(io.Discard, append(args[:len(args)-3], "4", "--blocks", "2")))
	if w, h := size(t, path); w <= width || h <= height {
		t.Errorf("two blocks with four heads make a picture of %d x %d pixels, want it larger than %d x %d, for one block with one head", w, h, width, height)
	}
}

// size returns the width and height of a picture.
func size(t *testing.T, path string) (width, height int) {
	t.Helper()
	bounds := golden.Decoded(t, path).Bounds()
	return bounds.Dx(), bounds.Dy()
}

func TestBadWord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "attention.png")
	var call *example.CallError
	if err := run(io.Discard, []string{"--word", "Attention", "--out", path}); !errors.As(err, &call) || !strings.Contains(err.Error(), `'A'`) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the program wrote a picture for a wrong word")
	}
}
