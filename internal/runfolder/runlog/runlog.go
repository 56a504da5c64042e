// Package runlog reads and writes what a run folder says about its training: the checks in history.jsonl, and the time
// of steps in times.jsonl. Package runfolder has the other files, and knows nothing about training.
package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
)

// ErrNoHistory means that a run ended before its first check.
var ErrNoHistory = errors.New("has no history: the run ended before its first check")

// A Record is what a run folder says about its training.
type Record struct {
	History  []train.Check // at least one check
	Seconds  []float64     // time per step before each check, or 0 if it is unknown
	Untimed  int           // number of lines in times.jsonl that Seconds ignores
	Finished bool          // whether there is a summary
}

// Read reads the history of the run with this id. If there was no check yet, the error wraps ErrNoHistory. If the run
// is finished, Read decodes its summary into the value that summary points to.
//
// In a finished run, the configuration and the history must match the checksums in the summary. In an unfinished run,
// they must match the header of the checkpoint. If training ended between two checks, the history has one check more,
// at the checkpoint's step, which nothing is compared with. If a process was killed between two writes, the history may
// have one check less than the checkpoint, or one more, or there may be no history. Then Read returns the
// checkpoint's history, from which the run would resume. Without a checkpoint, Read compares nothing.
func Read(f runfolder.Folder, id string, summary any) (Record, error) {
	return runfolder.Settled(func() (Record, error) { return read(f, id, summary) })
}

func read(f runfolder.Folder, id string, summary any) (r Record, err error) {
	// A training may be writing to the folder. It writes the summary last, so the summary is read first.
	s, err := f.ReadSummary(summary)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Finished = err == nil
	times, err := f.Read(runfolder.TimesFile, runfolder.MaxHistory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s can't be read, or was changed: %w: remove it, and the run has no times", f.Path(runfolder.TimesFile), err)
	}
	content, err := f.Read(runfolder.HistoryFile, runfolder.MaxHistory)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.Finished:
		return r, f.Missing(runfolder.HistoryFile, runfolder.SummaryFile)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("%s: %w", f.Path(runfolder.HistoryFile), err)
	}
	err = nil
	for d := json.NewDecoder(bytes.NewReader(content)); err == nil; {
		var check train.Check
		if err = d.Decode(&check); err == nil {
			r.History = append(r.History, check)
		}
	}
	if err != io.EOF {
		return r, fmt.Errorf("%s can't be read, or was changed: check %d: %w", f.Path(runfolder.HistoryFile), len(r.History)+1, err)
	}
	if r.Finished {
		err = compareSummary(f, s, content)
	} else {
		r.History, err = compareCheckpoint(f, id, r.History)
	}
	if err != nil {
		return r, err
	}
	switch {
	case len(r.History) == 0 && f.Has(runfolder.WeightsFile):
		return r, f.Missing(runfolder.HistoryFile, runfolder.WeightsFile)
	case len(r.History) == 0:
		return r, fmt.Errorf("%s %w", f.Dir, ErrNoHistory)
	}
	known, untimed := timesOf(times, r.History)
	for _, check := range r.History {
		r.Seconds = append(r.Seconds, known[check.Step])
	}
	r.Untimed = untimed
	return r, nil
}

// compareSummary compares the configuration and the content of the history with the summary's checksums.
func compareSummary(f runfolder.Folder, s runfolder.Sums, history []byte) error {
	config, err := f.Sum(runfolder.ConfigFile)
	switch {
	case err != nil:
		return err
	case s.Files[runfolder.ConfigFile] != config:
		return f.Misfit(runfolder.SummaryFile, runfolder.ConfigFile)
	case s.Files[runfolder.HistoryFile] != runfolder.Sum(history):
		return f.Misfit(runfolder.SummaryFile, runfolder.HistoryFile)
	}
	return nil
}

// compareCheckpoint compares the id and the history of an unfinished run with its checkpoint, if there is one. It
// returns the checkpoint's history, with the check at the end of training if there is one.
func compareCheckpoint(f runfolder.Folder, id string, history []train.Check) ([]train.Check, error) {
	saved, err := train.ReadProgress(filepath.Join(f.Dir, runfolder.CheckpointFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return history, nil
	case err != nil:
		return nil, fmt.Errorf("%w: restore it, or remove it to skip comparing the history", err)
	case saved.Run != id:
		return nil, f.Misfit(runfolder.ConfigFile, runfolder.CheckpointFile)
	}
	if n := len(saved.History); len(history) == n+1 && history[n].Step == saved.Step {
		saved.History = append(saved.History, history[n]) // the check at the end: Fit saves the checkpoint before it
	}
	n := min(len(history), len(saved.History))
	if !slices.EqualFunc(history, saved.History[:n], func(a, b train.Check) bool { return runfolder.JSONSum(a) == runfolder.JSONSum(b) }) {
		return nil, fmt.Errorf("%w; heed train --resume rewrites %s", f.Misfit(runfolder.HistoryFile, runfolder.CheckpointFile), runfolder.HistoryFile)
	}
	return saved.History, nil
}

// WriteHistory writes the history.
func WriteHistory(w *runfolder.Writer, history []train.Check) error {
	return w.Write(runfolder.HistoryFile, func(file io.Writer) error {
		e := json.NewEncoder(file)
		for _, check := range history {
			if err := e.Encode(check); err != nil {
				return err
			}
		}
		return nil
	})
}
