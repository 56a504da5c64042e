//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
)

// A file of a run folder that isn't a regular file is an error at once: reading a pipe or a device might never end.
func TestEndlessFiles(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	failsAtOnce := func(kind, file string, call ...string) {
		t.Helper()
		done := make(chan called, 1)
		go func() { done <- heed(call...) }()
		select {
		case c := <-done:
			fail(t, c, 1, file, "a regular file")
		case <-time.After(time.Minute):
			t.Fatalf("heed waits for a %s in place of %s, want an error", kind, file)
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--out="+dir)...), 1, "interrupted")
	for _, file := range []string{runfolder.ConfigFile, runfolder.WeightsFile, runfolder.CheckpointFile} {
		path := filepath.Join(dir, file)
		good := read(t, path)
		call := []string{"predict", dir, "abc"}
		if file == runfolder.CheckpointFile {
			call = []string{"train", "--resume=" + dir}
		}
		for name, put := range map[string]func() error{
			"pipe":   func() error { return syscall.Mkfifo(path, 0o666) },
			"device": func() error { return os.Symlink("/dev/zero", path) },
			"folder": func() error { return os.Mkdir(path, 0o777) },
		} {
			os.Remove(path)
			must.Do(t, put())
			failsAtOnce(name, file, call...)
		}
		os.Remove(path)
		write(t, path, good)
	}
	succeed(t, "train", "--resume="+dir)
	// The run is finished.
	for _, file := range []string{runfolder.HistoryFile, runfolder.WeightsFile, runfolder.CheckpointFile} {
		path := filepath.Join(dir, file)
		good := read(t, path)
		must.Do(t, errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o666)))
		failsAtOnce("pipe", file, "train", "--resume="+dir, "--max-epochs=9")
		os.Remove(path)
		write(t, path, good)
	}

	// A link or a pipe in place of the page is replaced, not written to.
	victim, page := filepath.Join(t.TempDir(), "victim"), filepath.Join(dir, runfolder.ReportFile)
	write(t, victim, "precious")
	for _, put := range []func() error{
		func() error { return os.Symlink(victim, page) },
		func() error { return syscall.Mkfifo(page, 0o666) },
	} {
		must.Do(t, errors.Join(os.Remove(page), put()))
		succeed(t, "report", dir)
		if info, err := os.Lstat(page); err != nil || !info.Mode().IsRegular() || read(t, victim) != "precious" {
			t.Fatalf("the page is %v, %v, and the link's target has %.20q, want a regular file, and an unchanged target", info.Mode(), err, read(t, victim))
		}
	}
}

// A file that is far too large for its run is an error before it is read. A signal ends the reading of the others.
func TestHugeFiles(t *testing.T) {
	t.Parallel()
	dir := copied(t, "--task=copy", "--seed=1")
	for _, file := range []string{runfolder.WeightsFile, runfolder.CheckpointFile, runfolder.HistoryFile} {
		path := filepath.Join(dir, file)
		good := read(t, path)
		must.Do(t, os.Truncate(path, 50<<30)) // sparse
		began := time.Now()
		fail(t, heed("train", "--resume="+dir, "--max-epochs=9"), 1, file, "has 53687091200 bytes, but this run's can have at most")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: the error takes %v", file, took)
		}
		write(t, path, good)
	}
	fail(t, heedContext(cancelled(t, 0), "train", "--resume="+dir, "--max-epochs=9"), 1, "interrupted")
}
