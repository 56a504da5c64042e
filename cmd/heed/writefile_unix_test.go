//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What isn't a regular file stays what it is, where it is named to be written.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	write(t, file, "before")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Skipf("there are no pipes to be had: %v", err)
	}
	hello := func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	}
	for _, path := range []string{link, file, filepath.Join(dir, "new")} {
		if err := writeFile(path, hello); err != nil || read(t, path) != "hello" || read(t, file) != "hello" {
			t.Errorf("%s: %v; it has %q, and the file %q", path, err, read(t, path), read(t, file))
		}
	}
	got := make(chan string)
	go func() {
		content, _ := os.ReadFile(pipe)
		got <- string(content)
	}()
	if err := writeFile(pipe, hello); err != nil || <-got != "hello" {
		t.Errorf("a pipe: %v", err)
	}
	for path, mode := range map[string]os.FileMode{link: os.ModeSymlink, pipe: os.ModeNamedPipe} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != mode {
			t.Errorf("%s has become %v, %v", path, info.Mode(), err)
		}
	}
	if err := writeFile(dir, hello); err == nil || !strings.Contains(err.Error(), "names a folder") {
		t.Errorf("a folder: %v", err)
	}
	for path, want := range map[string]string{link: "", file: "", pipe: "", filepath.Join(dir, "new"): "", filepath.Join(link, "x"): "--out's folder " + link + " is a file", dir: "is a folder"} {
		if err := writable("out", path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("writable: %s: %v, want %q", path, err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".heed-*")); len(left) > 0 || err != nil {
		t.Errorf("writable left %q: %v", left, err)
	}
	full, err := os.Stat("/dev/full")
	if err != nil || full.Mode().Type()&os.ModeCharDevice == 0 {
		t.Skip("there is no /dev/full")
	}
	alias := filepath.Join(dir, "full") // lest a mistake takes the device away
	if err := os.Symlink("/dev/full", alias); err != nil {
		t.Fatal(err)
	}
	much := func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("hello", 1<<16))
		return err
	}
	if err := writeFile(alias, much); err == nil || !strings.Contains(err.Error(), "no space left") || strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("a full device: %v", err)
	}
	if info, err := os.Lstat(alias); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link to a full device has become %v, %v", info.Mode(), err)
	}
}
