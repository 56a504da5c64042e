package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

// shapes writes a folder of noisy images. Each image has a horizontal bar, a vertical bar or a square at a random
// place.
func shapes(t *testing.T, known, test int) string {
	t.Helper()
	folder, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	for _, part := range []struct {
		name string
		n    int
	}{{"train", known}, {"t10k", test}} {
		n := part.n
		pixels, labels := make([]byte, n*side*side), make([]byte, n)
		for i := range labels {
			labels[i] = byte(i % 3)
			size := [][2]int{{3, 18}, {18, 3}, {8, 8}}[i%3] // rows and columns
			top, left := 2+rng.IntN(25-size[0]), 2+rng.IntN(25-size[1])
			for p := range side * side {
				row, column := p/side-top, p%side-left
				level := rng.IntN(100)
				if row >= 0 && row < size[0] && column >= 0 && column < size[1] {
					level += 150
				}
				pixels[i*side*side+p] = byte(level)
			}
		}
		write(t, folder, part.name+"-images-idx3-ubyte.gz", idx(pixels, n, side, side))
		write(t, folder, part.name+"-labels-idx1-ubyte.gz", idx(labels, n))
	}
	return folder
}

// right returns the share of correctly classified test images that the output reports.
func right(t *testing.T, output string, total int) float64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output), "\n")
	var percent float64
	var n int
	if _, err := fmt.Sscanf(lines[len(lines)-1], "%f %% of %d test images are classified correctly.", &percent, &n); err != nil || n != total {
		t.Fatalf("the last line is %q, want the share of %d test images (error: %v)", lines[len(lines)-1], total, err)
	}
	return percent / 100
}

// TestShapes checks that the model learns to classify new shapes at any position.
func TestShapes(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--data", shapes(t, 1536, 300), "--epochs", "5", "--blocks", "1", "--heads", "2"}))
	if share := right(t, b.String(), 300); share < 0.9 {
		t.Errorf("the model classifies %v of the shapes correctly, want at least 0.9:\n%s", share, &b)
	}
}

// TestFashion checks that a small model classifies most clothes correctly after one epoch.
func TestFashion(t *testing.T) {
	if testing.Short() {
		t.Skip("an epoch takes several seconds")
	}
	if _, err := os.Stat("/usr/share/datasets/fashion-mnist"); err != nil {
		t.Skipf("this test needs Debian's package dataset-fashion-mnist: %v", err)
	}
	var b strings.Builder
	must.Do(t, run(&b, []string{"--epochs", "1", "--blocks", "1", "--heads", "2"}))
	if share := right(t, b.String(), 10_000); share < 0.75 {
		t.Errorf("the model classifies %v of the clothes correctly, want at least 0.75:\n%s", share, &b)
	}
}

func TestOwn(t *testing.T) {
	args := []string{"--data", shapes(t, 24, 3), "--epochs", "1", "--blocks", "1", "--heads", "1"}
	golden.Calls(t, run, args, "-epochs", "-blocks", "-heads")
	empty := t.TempDir()
	must.Fail(t, run(io.Discard, []string{"--data", empty}), "package dataset-fashion-mnist, or name their folder with --data", empty)
}
