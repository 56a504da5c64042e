package task

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
)

// Training removes the temporary files that killed processes left, even if the first one was killed before config.json
// was complete. It keeps users' files, and the page that heed report may be writing at this moment.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".config.json.tmp-notes", ".config.json.tmp-", ".other.json.tmp-1", "config.json.tmp-1", ".report.html.tmp-2"}
	remove := []string{".config.json.tmp-1", ".tokenizer.json.tmp-4294967295", ".report.html.tmp-1"}
	for _, name := range append(keep, remove...) {
		write(t, filepath.Join(dir, name), "")
	}
	must.Do(t, os.Chtimes(filepath.Join(dir, ".report.html.tmp-1"), time.Now(), time.Now().Add(-time.Hour)))
	must.Do(t, os.Mkdir(filepath.Join(dir, ".config.json.tmp-3"), 0o777))
	run(t, made(t, small(t, "copy")), dir, train.RunOptions{MaxSteps: 1})
	for _, name := range append(keep, ".config.json.tmp-3") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("got the error %v, want %s kept", err, name)
		}
	}
	for _, name := range remove {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got the error %v, want the file removed", name, err)
		}
	}
}
