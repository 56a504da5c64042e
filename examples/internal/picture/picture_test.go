package picture

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/must"
)

// A figure that can't be drawn leaves no file, and keeps the file that was there.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old.png"), filepath.Join(dir, "fresh.png")
	must.Do(t, os.WriteFile(old, []byte("old"), 0o666))
	for _, path := range []string{old, fresh} {
		if Write(path, heatmap.Figure{}) == nil {
			t.Errorf("%s: got no error for a figure without layers", path)
		}
	}
	if content, err := os.ReadFile(old); err != nil || string(content) != "old" {
		t.Errorf("the old file holds %q, %v, want it unchanged", content, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v, want only the old file", files, err)
	}
}
