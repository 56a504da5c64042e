package main

import (
	"path/filepath"
	"testing"
)

// An exported model must continue a text as the run does.
func TestExport(t *testing.T) {
	t.Parallel()
	dir, out := foxRun(t), filepath.Join(t.TempDir(), "models", "fox")
	prints(t, "Exported: "+out+" (model_type gpt2)\n", "export", dir, "--out", out)
	args := []string{"--prompt=The", "--temperature=0", "--tokens=13"}
	want := succeed(t, append([]string{"generate", dir}, args...)...)
	prints(t, want, append([]string{"generate", out}, args...)...)
	fail(t, heed("export", dir, "--out", out), 1, out+" isn't empty: it has config.json; choose a new folder")
}
