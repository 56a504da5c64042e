package main

import (
	"path/filepath"
	"testing"
)

// An exported model must continue a text as the run does.
func TestExport(t *testing.T) {
	t.Parallel()
	dir, out := foxRun(t), filepath.Join(t.TempDir(), "models", "fox")
	if got, want := succeed(t, "export", dir, "--out", out), "Exported: "+out+" (model_type gpt2)\n"; got != want {
		t.Errorf("heed export prints %q, want %q", got, want)
	}
	args := []string{"--prompt=The", "--temperature=0", "--tokens=13"}
	want := succeed(t, append([]string{"generate", dir}, args...)...)
	if got := succeed(t, append([]string{"generate", out}, args...)...); got != want {
		t.Errorf("the exported model writes %q, want %q", got, want)
	}
	fail(t, heed("export", dir, "--out", out), 1, out+" isn't empty: it has config.json; choose a new folder")
}
