package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	epochs := 8
	if testing.Short() {
		epochs = 1
	}
	path := filepath.Join(t.TempDir(), "attention.png")
	var out bytes.Buffer
	if err := run(&out, "attention", path, epochs); err != nil {
		t.Fatal(err)
	}
	if !testing.Short() && !strings.Contains(out.String(), "attention -> noitnetta") {
		t.Errorf("it didn't learn to reverse:\n%s", out.String())
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if b := img.Bounds(); b.Dx() < 300 || b.Dy() < 150 {
		t.Errorf("the picture has %v", b)
	}
}

func TestRunBadWord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "attention.png")
	if err := run(&bytes.Buffer{}, "Attention", path, 1); err == nil || !strings.Contains(err.Error(), `'A'`) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it wrote a picture all the same")
	}
}
