//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
)

// No output overwrites an input or a file of a run, whatever path or link names it.
func TestOutputsKeepInputs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	path := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	own, run, other := path("own.csv"), path("run"), path("other")
	write(t, own, lines(60, func(i int) string { return fmt.Sprintf("word %d,class %d", i, i%3) }))
	write(t, path("page.html"), strings.Repeat("<p>a page to learn\n", 100))
	succeed(t, small("--task=classification", "--steps-per-epoch=0", "--validation=10", "--data="+own, "--out="+run)...)
	succeed(t, small("--task=text", "--max-len=8", "--max-epochs=1", "--data="+path("page.html"), "--out="+other)...)
	for link, file := range map[string]string{
		"config": path("run", "config.json"), "weights.png": path("run", "model.safetensors"), "config.html": path("run", "config.json"), "rows": own, "rows.png": own,
	} {
		must.Do(t, os.Symlink(file, path("soft-"+link)))
		must.Do(t, os.Link(file, path("hard-"+link)))
	}
	must.Do(t, os.Symlink(run, path("folder")))
	must.Do(t, os.Symlink(path("run", "source.json"), path("dangling"))) // a name that a run's file can have
	must.Do(t, os.Mkdir(path("texts"), 0o777))
	write(t, path("texts", "a.txt"), strings.Repeat("a text to learn\n", 100))
	must.Do(t, os.Mkdir(path("foreign"), 0o777))
	write(t, path("foreign", "config.json"), `{"name": "of another program"}`)
	files := func() [3]map[string]string {
		inputs := map[string]string{"own.csv": read(t, own), "page.html": read(t, path("page.html"))}
		return [3]map[string]string{inputs, folder(t, run), folder(t, other)}
	}
	before := files()

	const reads, ofRun = "which this call reads", "of a run"
	for _, c := range []struct {
		out  string
		want string
		args []string
	}{
		{own, reads, []string{"eval", run, "--data", own, "--answers"}},
		{own, reads, []string{"eval", run, "--answers"}}, // it validates on rows of this file
		{path("soft-rows"), reads, []string{"eval", run, "--data", own, "--answers"}},
		{path("hard-rows"), reads, []string{"eval", run, "--data", own, "--answers"}},
		{own, reads, []string{"eval", run, "--data", path("soft-rows"), "--answers"}},
		{path("run", "config.json"), reads, []string{"eval", run, "--answers"}},
		{path("hard-config"), reads, []string{"eval", run, "--answers"}},
		{path("soft-config"), reads, []string{"eval", run, "--answers"}},
		{path("other", "config.json"), ofRun, []string{"eval", run, "--answers"}},
		// A run's file can have this name, even if there is no such file now.
		{path("other", "tokenizer.json"), ofRun, []string{"eval", run, "--answers"}},
		{path("folder", "Summary.json"), ofRun, []string{"eval", run, "--answers"}}, // the same as summary.json on some file systems
		{path("folder", ".heed.lock"), ofRun, []string{"eval", run, "--answers"}},
		{path("dangling"), ofRun, []string{"eval", run, "--answers"}},
		{path("run", "model.safetensors"), reads, []string{"predict", run, "--data", own, "--out"}},
		{path("folder", "model.safetensors"), reads, []string{"predict", run, "--data", own, "--out"}},
		{path("soft-rows"), reads, []string{"predict", run, "--data", own, "--out"}},
		{path("soft-weights.png"), reads, []string{"attention", run, "a", "--out"}},
		{path("soft-weights.png"), ofRun, []string{"attention", other, "a", "--out"}},
		{path("run", "report.html"), ofRun, []string{"attention", run, "a", "--out"}},
		{path("soft-config.html"), reads, []string{"report", run, "--out"}},
		{path("soft-config.html"), ofRun, []string{"report", other, "--out"}},
		{path("page.html"), reads, []string{"report", run, other, "--out"}},
	} {
		t.Run(strings.Join(c.args, " ")+" "+c.out, func(t *testing.T) {
			fail(t, heed(append(c.args, c.out)...), 1, c.out+" would overwrite ", c.want, "give another name")
		})
	}
	fail(t, heed("train", "--task=classification", "--data="+own, "--find-rate="+path("soft-rows.png")), 1, reads)
	fail(t, heed("train", "--task=copy", "--from="+run, "--find-rate="+path("soft-weights.png")), 1, reads)
	fail(t, heed("train", "--task=text", "--data="+path("texts"), "--find-rate="+path("texts", "rate.png")), 1, "would become a part of the text in "+path("texts"))
	for i, now := range files() {
		if !maps.Equal(now, before[i]) {
			t.Errorf("%s have changed, want them unchanged", []string{"the inputs", "the files of run", "the files of other"}[i])
		}
	}

	for _, args := range [][]string{
		{"eval", run, "--answers", path("run", "answers.tsv")},
		{"eval", run, "--answers", path("run", "answers.tsv")}, // again
		{"report", run, other, "--out", path("run", "report.html")},
		{"attention", run, "a", "--out", path("foreign", "report.html")},
	} {
		succeed(t, args...)
	}
}

// If the output becomes a link to an input, or a pipe, after open, write reports an error and keeps the input.
func TestOutputChangesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	input, out := filepath.Join(dir, "input"), filepath.Join(dir, "out")
	write(t, input, "rows")
	o := &outFile{flag: "out", path: out, inputs: []string{input}}
	must.Do(t, o.open(io.Discard))
	for name, change := range map[string]func() error{
		"a symbolic link": func() error { return os.Symlink(input, out) },
		"a hard link":     func() error { return os.Link(input, out) },
		"a pipe":          func() error { return syscall.Mkfifo(out, 0o666) },
	} {
		must.Do(t, change())
		must.Fail(t, o.write(t.Context(), func(w io.Writer) error { return nil }), "give another name")
		if read(t, input) != "rows" {
			t.Errorf("%s: the input has %q, want rows", name, read(t, input))
		}
		must.Do(t, os.Remove(out))
	}
}

// If a link leads to an input only while the output is being written, the input isn't overwritten.
func TestOutputLinkThatMoves(t *testing.T) {
	dir := t.TempDir()
	input, link := filepath.Join(dir, "input"), filepath.Join(dir, "link")
	write(t, input, "rows")
	lead := func(target string) {
		os.Remove(link)
		must.Do(t, os.Symlink(filepath.Join(dir, target), link))
	}
	o := &outFile{flag: "out", path: link, inputs: []string{input}}
	lead("elsewhere")
	must.Do(t, o.open(io.Discard))
	lead("input")
	must.Fail(t, o.write(t.Context(), func(w io.Writer) error {
		lead("elsewhere")
		return hello(w)
	}), "would overwrite")
	if read(t, input) != "rows" {
		t.Errorf("the input has %q, want rows", read(t, input))
	}
}

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello")
	return err
}

// An outFile replaces a regular file, follows a link, and writes to a device in place.
func TestOutFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	write(t, file, "before")
	must.Do(t, os.Symlink(file, link))
	put := func(path string, content func(io.Writer) error) error {
		o := &outFile{flag: "out", path: path}
		if err := o.open(io.Discard); err != nil {
			return err
		}
		defer o.Close()
		return o.write(t.Context(), content)
	}
	for _, path := range []string{link, file, filepath.Join(dir, "new")} {
		must.Do(t, put(path, hello))
		if read(t, path) != "hello" || read(t, file) != "hello" {
			t.Errorf("%s: the files have %q and %q, want hello", path, read(t, path), read(t, file))
		}
	}
	stays(t, link, os.ModeSymlink)

	// If a link leads to a missing file, the link stays, and write makes the file.
	must.Do(t, os.Mkdir(filepath.Join(dir, "folder"), 0o777))
	for name, leads := range map[string]string{
		"absolute": filepath.Join(dir, "made 1"), "relative": "folder/made 2", "again": "relative", "up": "folder/../made 3", "loop": "loop 2", "loop 2": "loop", "far": "missing/x",
	} {
		must.Do(t, os.Symlink(leads, filepath.Join(dir, name)))
	}
	for name, made := range map[string]string{"absolute": "made 1", "relative": "folder/made 2", "up": "made 3", "again": "folder/made 2"} {
		must.Do(t, put(filepath.Join(dir, name), hello))
		if stays(t, filepath.Join(dir, name), os.ModeSymlink); read(t, filepath.Join(dir, made)) != "hello" {
			t.Errorf("for the dangling link %s, %s has other content than hello", name, made)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "loop"): "is a symbolic link that leads back to itself", filepath.Join(dir, "far"): "folder " + filepath.Join(dir, "missing") + " doesn't exist",
		filepath.Join(link, "x"): "--out's folder " + link + " is a file", dir: "is a folder", filepath.Join(dir, "a", "b"): "doesn't exist: make it first",
	} {
		must.Fail(t, put(path, hello), want)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".heed-*")); len(left) > 0 || err != nil {
		t.Errorf("open leaves %q, %v, want no files", left, err)
	}
	full, err := os.Stat("/dev/full")
	if err != nil || full.Mode().Type()&os.ModeCharDevice == 0 {
		t.Skip("there is no /dev/full")
	}
	alias := filepath.Join(dir, "full") // a link, because a mistake would replace the device
	must.Do(t, os.Symlink("/dev/full", alias))
	much := func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("hello", 1<<16))
		return err
	}
	if err := put(alias, much); err == nil || strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("a full device: error %v, want \"no space left\" once", err)
	}
	stays(t, alias, os.ModeSymlink)
}

// stays checks that a file still has this type.
func stays(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	if info := must.Get(os.Lstat(path))(t); info.Mode().Type() != want {
		t.Errorf("%s is now %v, want %v", path, info.Mode(), want)
	}
}

// Opening a pipe doesn't wait for a reader, and writing to a stalled reader ends with the context.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Skipf("can't make a pipe: %v", err)
	}
	o := &outFile{flag: "out", path: pipe}
	must.Fail(t, o.open(io.Discard), pipe+" is a pipe that nobody reads: start its reader first")
	reader := must.Get(os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0))(t)
	defer reader.Close()
	must.Do(t, o.open(io.Discard))
	must.Do(t, o.write(t.Context(), hello))
	if content, err := io.ReadAll(reader); string(content) != "hello" || err != nil {
		t.Errorf("the reader gets %q, %v, want hello", content, err)
	}
	stays(t, pipe, os.ModeNamedPipe)

	must.Do(t, o.open(io.Discard))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	endless := func(w io.Writer) error {
		for {
			if err := hello(w); err != nil {
				return err
			}
		}
	}
	if err := o.write(ctx, endless); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stalled reader: error %v, want %v", err, context.DeadlineExceeded)
	}
}

// If standard output is a file and --answers is /dev/stdout, the file gets the printed lines and the answers. Writing
// answers to the file with the inputs is an error, also through /dev/stdout.
func TestOutputToStdout(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/stdout"); err != nil {
		t.Skip("there is no /dev/stdout")
	}
	dir := t.TempDir()
	rows, run := filepath.Join(dir, "rows.tsv"), filepath.Join(dir, "run")
	write(t, rows, strings.Repeat("a b\tX Y\nb c\tY Z\n", 10))
	succeed(t, small("--task=tagging", "--steps-per-epoch=0", "--validation=1", "--data="+rows, "--out="+run)...)
	before := read(t, rows)
	own := must.Get(os.OpenFile(rows, os.O_WRONLY|os.O_APPEND, 0))(t)
	defer own.Close()
	for _, out := range []string{rows, "/dev/stdout"} { // both are the input
		cmd := process("predict", run, "--data", rows, "--out", out)
		cmd.Stdout = own
		if err := cmd.Run(); err == nil || read(t, rows) != before {
			t.Errorf("--out %s: error %v, and the input has %d bytes, want an error and %d bytes", out, err, len(read(t, rows)), len(before))
		}
	}
	stdout := must.Get(os.Create(filepath.Join(dir, "stdout")))(t)
	defer stdout.Close()
	cmd := process("eval", run, "--data", rows, "--answers=/dev/stdout")
	cmd.Stdout = stdout
	must.Do(t, cmd.Run())
	if got := read(t, stdout.Name()); !strings.HasPrefix(got, "Rows: ") || !strings.Contains(got, "source\tanswer\t") {
		t.Errorf("the file has %q, want the scores, then the answers", got)
	}
}
