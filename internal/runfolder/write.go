package runfolder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/folderlock"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
)

// A Writer writes to a run folder that it has locked.
type Writer struct {
	Folder
	lock *folderlock.Lock
}

// Lock makes the folder if necessary, and locks it against other trainings until Release.
func Lock(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("%s can't become a run folder: %w", dir, text.Reason(err))
	}
	lock, err := folderlock.Take(dir)
	if errors.Is(err, folderlock.ErrHeld) {
		return nil, fmt.Errorf("another training is writing to %s: wait for its end, or choose another folder", dir)
	}
	if err != nil {
		return nil, err
	}
	return &Writer{At(dir), lock}, nil
}

// Release unlocks the folder.
func (w *Writer) Release() { w.lock.Release() }

// CheckLock returns an error if the folder was moved or replaced, so that another training may use it now.
func (w *Writer) CheckLock() error {
	if err := w.lock.Check(); err != nil {
		return fmt.Errorf("%s isn't this training's folder any more: %w: resume it where its files are now", w.Dir, err)
	}
	return nil
}

// temporary matches the names of atomicfile's temporary files.
var temporary = regexp.MustCompile(`^\.(.+)\.tmp-[0-9]+$`)

// Tidy removes the files that killed processes left: temporary files and, if the folder has no run yet, the files that
// are written before the configuration. A temporary file of the page stays until it is a minute old, because heed
// report may be writing it: that needs no lock.
func (w *Writer) Tidy() error {
	if begun, err := w.HasRun(); err == nil && !begun {
		for _, name := range beginning {
			if err := os.Remove(w.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	entries, err := os.ReadDir(w.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := temporary.FindStringSubmatch(e.Name())
		if name == nil || !slices.Contains(Files(), name[1]) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); name[1] == ReportFile && (err != nil || time.Since(info.ModTime()) < time.Minute) {
			continue
		}
		if err := os.Remove(w.Path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Finished reports whether the run is finished, with all files that its summary lists. The checkpoint may be missing,
// because only training for longer needs it. Finished returns an error if a file doesn't match the checksum in the
// summary, and ctx.Err() if ctx ends.
func (w *Writer) Finished(ctx context.Context) (bool, error) {
	if !w.Has(SummaryFile) {
		return false, nil
	}
	s, err := w.ReadSummary(new(any))
	if err != nil {
		return false, err
	}
	found, err := w.sums(ctx)
	if err != nil {
		return false, err
	}
	found[SummaryFile] = s.Files[SummaryFile]
	whole := true
	for name, sum := range s.Files {
		switch found[name] {
		case sum:
		case "":
			whole = whole && name == CheckpointFile
		default:
			return false, w.Misfit(SummaryFile, name)
		}
	}
	return whole, nil
}

// Reopen removes the summary, so that a run can train for longer, or write files again that are missing. If the
// checkpoint is damaged or, in a finished run, missing, or if ctx ends, Reopen returns an error and changes nothing.
func (w *Writer) Reopen(ctx context.Context, finished bool) error {
	switch {
	case w.Has(CheckpointFile):
		if err := w.intact(ctx, CheckpointFile); err != nil {
			return err
		}
	case finished:
		return fmt.Errorf("the run in %s has no %s any more, so it can't train for longer: restore it, or train in another folder", w.Dir, CheckpointFile)
	}
	if err := os.Remove(w.Path(SummaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// intact returns an error if the content of a safetensors file doesn't match its checksum.
func (f Folder) intact(ctx context.Context, name string) error {
	file, size, err := f.Open(name)
	if err == nil {
		defer file.Close()
		var tensors *safetensors.File
		if tensors, err = safetensors.NewFile(until{ctx, file}, size); err == nil {
			_, err = tensors.Tensors(func(string) bool { return false })
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path(name), err)
	}
	return nil
}

// Write writes a file whole or not at all.
func (w *Writer) Write(name string, content func(file io.Writer) error) error {
	return atomicfile.WriteFile(w.Path(name), content)
}

// WriteConfig writes the configuration.
func (w *Writer) WriteConfig(content []byte) error { return w.writeBytes(ConfigFile, content) }

// WritePublished writes the files of the published model that the run began from, in one archive.
func (w *Writer) WritePublished(content []byte) error { return w.writeBytes(PublishedFile, content) }

func (w *Writer) writeBytes(name string, content []byte) error {
	return w.Write(name, func(file io.Writer) error {
		_, err := file.Write(content)
		return err
	})
}

// Sums returns the checksums for a summary: the checksums of all files that must not change any more, and the checksum
// in the header of the weights. If ctx ends, the error is ctx.Err().
func (w *Writer) Sums(ctx context.Context) (files map[string]string, weights string, err error) {
	if err := w.CheckLock(); err != nil {
		return nil, "", err
	}
	if files, err = w.sums(ctx); err != nil {
		return nil, "", err
	}
	f, err := safetensors.Open(w.Path(WeightsFile))
	if err != nil {
		return nil, "", err
	}
	return files, f.Checksum, f.Close()
}

// WriteSummary writes the summary as indented JSON.
func (w *Writer) WriteSummary(summary any) error {
	return w.Write(SummaryFile, func(file io.Writer) error {
		e := json.NewEncoder(file)
		e.SetIndent("", "  ")
		return e.Encode(summary)
	})
}
