//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/heed-go/heed/train/task"
)

// Files of a run folder that have no end are refused at once: to read one would be to wait, or to read for ever.
func TestEndlessFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--out="+dir)...), 1, "interrupted")
	for _, file := range []string{task.ConfigFile, task.WeightsFile, task.CheckpointFile} {
		path := filepath.Join(dir, file)
		good := read(t, path)
		call := []string{"predict", dir, "abc"}
		if file == task.CheckpointFile {
			call = []string{"train", "--resume=" + dir}
		}
		for name, put := range map[string]func() error{
			"pipe":   func() error { return syscall.Mkfifo(path, 0o666) },
			"device": func() error { return os.Symlink("/dev/zero", path) },
			"folder": func() error { return os.Mkdir(path, 0o777) },
		} {
			os.Remove(path)
			if err := put(); err != nil {
				t.Fatal(err)
			}
			done := make(chan called, 1)
			go func() { done <- heed(call...) }()
			select {
			case c := <-done:
				fail(t, c, 1, file, "a regular file")
			case <-time.After(10 * time.Second):
				t.Fatalf("with a %s for %s, it waits", name, file)
			}
		}
		os.Remove(path)
		write(t, path, good)
	}
	succeed(t, "train", "--resume="+dir)
}
