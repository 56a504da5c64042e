package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/folderlock"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
)

// An outFile is a file that a flag names and that is written when the work is done.
type outFile struct {
	flag, path string
	inputs     []string // files and folders that the call reads, and must not overwrite
	page       bool     // whether path may be the report.html of a run
	stream     *os.File // the open file if path is a pipe, a device or standard output; otherwise nil
}

// open checks, before any work is done, that neither the file nor standard output overwrites an input or a run's file,
// and that the file can be written. Without a path, it checks only standard output. Close the outFile after use.
func (o *outFile) open(stdout io.Writer) error {
	if err := checkStdout(stdout, o.inputs); err != nil || o.path == "" {
		return err
	}
	info, err := os.Stat(o.path)
	if err == nil && info.IsDir() {
		return fmt.Errorf("--%s %s is a folder", o.flag, o.path)
	}
	path, failed := o.target()
	if failed = cmp.Or(failed, o.check(path)); failed != nil {
		return failed
	}
	if err == nil && isStream(info) {
		return o.openStream(info)
	}
	folder := filepath.Dir(path)
	switch parent, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--%s's folder %s doesn't exist: make it first", o.flag, folder)
	case err == nil && !parent.IsDir():
		return fmt.Errorf("--%s's folder %s is a file", o.flag, folder)
	}
	f, err := os.CreateTemp(folder, ".heed-")
	if err != nil {
		return fmt.Errorf("--%s %s can't be written: %w", o.flag, o.path, text.Reason(err))
	}
	return cmp.Or(f.Close(), os.Remove(f.Name()))
}

// isStream reports whether a file is written in place instead of being replaced: a pipe, a device, or the file that is
// standard output.
func isStream(info fs.FileInfo) bool { return !info.Mode().IsRegular() || isStdout(info) }

func isStdout(info fs.FileInfo) bool {
	stdout, err := os.Stdout.Stat()
	return err == nil && os.SameFile(info, stdout)
}

// openStream opens a pipe, a device or standard output. It is an error if nobody reads the pipe.
func (o *outFile) openStream(info fs.FileInfo) (err error) {
	if isStdout(info) {
		o.stream = os.Stdout // if opened a second time, a file would overwrite the printed lines
		return nil
	}
	mode := os.O_WRONLY
	if info.Mode()&fs.ModeNamedPipe != 0 {
		mode |= syscall.O_NONBLOCK
	}
	o.stream, err = os.OpenFile(o.path, mode, 0)
	if errors.Is(err, syscall.ENXIO) && info.Mode()&fs.ModeNamedPipe != 0 {
		return fmt.Errorf("--%s %s is a pipe that nobody reads: start its reader first", o.flag, o.path)
	}
	if err != nil {
		return fmt.Errorf("--%s %s can't be written: %w", o.flag, o.path, text.Reason(err))
	}
	return nil
}

// maxLinks is the maximum number of symbolic links that lead from one to the next, as on Linux.
const maxLinks = 40

// target returns the path of the file to replace or to make. If the path is a symbolic link, this is where the link
// leads, also if there is no file yet.
func (o *outFile) target() (string, error) {
	path := o.path
	for range maxLinks {
		next, err := os.Readlink(path)
		if err != nil { // not a link
			return path, nil
		}
		if !filepath.IsAbs(next) {
			folder, _ := filepath.Split(path)
			next = folder + next // filepath.Join would remove "..", which may follow a link
		}
		path = next
	}
	return "", fmt.Errorf("--%s %s is a symbolic link that leads back to itself: give another name", o.flag, o.path)
}

// check returns an error if writing to path would overwrite a file that the call reads, or a file of a run.
func (o *outFile) check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		info = nil // there is nothing to overwrite
	}
	if input := among(o.inputs, info); input != "" {
		return fmt.Errorf("--%s %s would overwrite %s, which this call reads: give another name", o.flag, o.path, input)
	}
	for _, input := range o.inputs {
		if within(input, path) {
			return fmt.Errorf("--%s %s would become a part of the text in %s: give another name", o.flag, o.path, input)
		}
	}
	folder, base := filepath.Split(path)
	if !isRun(folder) {
		return nil
	}
	for _, name := range append(runfolder.Files(), folderlock.Name) {
		linked := among([]string{filepath.Join(folder, name)}, info) != ""
		if (strings.EqualFold(base, name) || linked) && !(o.page && name == runfolder.ReportFile) {
			return fmt.Errorf("--%s %s would overwrite the %s of a run: give another name", o.flag, o.path, name)
		}
	}
	return nil
}

// isRun reports whether a folder holds a run: its config.json has a key "format", like Heed's, or can't be read.
func isRun(folder string) bool {
	path := filepath.Join(folder, runfolder.ConfigFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return true
	}
	content, err := os.ReadFile(path)
	var config struct {
		Format json.RawMessage `json:"format"`
	}
	return cmp.Or(err, json.Unmarshal(content, &config)) != nil || config.Format != nil
}

// write replaces the file with the output of content. On an error, the file stays unchanged. If the name ends in .gz,
// the file is compressed with gzip. If path is a symbolic link, the link stays, and its target is replaced. A pipe or a
// device is written in place; the end of ctx stops waiting for a slow reader.
func (o *outFile) write(ctx context.Context, content func(w io.Writer) error) error {
	if strings.EqualFold(filepath.Ext(o.path), ".gz") {
		plain := content
		content = func(w io.Writer) error {
			z := gzip.NewWriter(w)
			if err := plain(z); err != nil {
				return err
			}
			return z.Close()
		}
	}
	if o.stream == nil {
		path, err := o.target() // followed once: the link may change while content is written
		if err != nil {
			return err
		}
		return atomicfile.WriteFile(path, func(w io.Writer) error {
			err := content(w)
			if info, failed := os.Stat(path); err == nil && failed == nil && isStream(info) {
				err = fmt.Errorf("--%s %s was a file and is now %v: give another name", o.flag, o.path, info.Mode())
			}
			return cmp.Or(err, o.check(path)) // path may name another file now than in open
		})
	}
	stop := context.AfterFunc(ctx, func() { o.stream.SetWriteDeadline(time.Now()) })
	defer stop()
	w := bufio.NewWriter(o.stream)
	err := cmp.Or(content(w), w.Flush(), o.Close())
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.path, text.Reason(err))
	}
	return nil
}

// Close closes a pipe or a device, if write hasn't done so.
func (o *outFile) Close() error {
	if o.stream == nil || o.stream == os.Stdout {
		return nil
	}
	return o.stream.Close()
}
