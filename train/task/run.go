package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
)

// A Run describes the training of a run folder.
type Run struct {
	Config  Config
	History []train.Check // at least one check
	Best    int           // index in History of the check whose weights are saved

	// Seconds has the time per step before each check, in seconds without validation, or 0 if it is unknown. No
	// checksum covers these times or the Summary's Seconds.
	Seconds []float64

	// Untimed is the number of lines in times.jsonl that Seconds ignores. A line must have a time above 0 for a check
	// in History, and the lines must be in order.
	Untimed int

	Summary *Summary // nil if the run is unfinished
}

// ErrNoHistory means that a run ended before its first check.
var ErrNoHistory = errors.New("has no history: the run ended before its first check")

// maxHistory is the greatest size of a history in bytes.
const maxHistory = 1 << 28

// ReadRun reads the configuration and the history of a finished or unfinished run. If there was no check yet, the error
// wraps ErrNoHistory. The rules are used as in ReadConfig.
//
// In a finished run, the configuration and the history must match the checksums in summary.json. In an unfinished run,
// they must match the header of the checkpoint. If a process was killed between two writes, the history may have one
// check less than the checkpoint, or one more. Then ReadRun returns the checkpoint's history, from which the run would
// resume. Without a checkpoint, ReadRun compares nothing.
func ReadRun(dir string, rules ...data.Rule) (*Run, error) {
	return settled(func() (*Run, error) { return readRun(dir, rules) })
}

func readRun(dir string, rules []data.Rule) (*Run, error) {
	fsys := os.DirFS(dir)
	c, err := readConfig(fsys, dir, rules)
	if err != nil {
		return nil, err
	}
	r := &Run{Config: c}
	// A training may be writing to the folder. It writes the summary last, so the summary is read first.
	if r.Summary, err = readSummary(fsys, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	times, err := readRegular(fsys, TimesFile, maxHistory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s can't be read, or was changed: %w: remove it; the run then has no times", filepath.Join(dir, TimesFile), err)
	}
	content, err := readRegular(fsys, HistoryFile, maxHistory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %w", dir, ErrNoHistory)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, HistoryFile), err)
	}
	for d := json.NewDecoder(bytes.NewReader(content)); err == nil; {
		var check train.Check
		if err = d.Decode(&check); err == nil {
			r.History = append(r.History, check)
		}
	}
	if err != io.EOF {
		return nil, fmt.Errorf("%s can't be read, or was changed: check %d: %w", filepath.Join(dir, HistoryFile), len(r.History)+1, err)
	}
	if err := r.compare(dir, content); err != nil {
		return nil, err
	}
	if len(r.History) == 0 {
		return nil, fmt.Errorf("%s %w", dir, ErrNoHistory)
	}
	r.Best = kept(c.Training.Stopping, r.History)
	known, untimed := timesOf(times, r.History)
	for _, check := range r.History {
		r.Seconds = append(r.Seconds, known[check.Step])
	}
	r.Untimed = untimed
	return r, nil
}

// compare compares the configuration and the history with the summary. The argument content is the history's file. In
// an unfinished run, compare uses the checkpoint instead, and takes its history.
func (r *Run) compare(dir string, content []byte) error {
	if s := r.Summary; s != nil {
		config, err := fileSum(filepath.Join(dir, ConfigFile))
		switch {
		case err != nil:
			return err
		case s.SHA256[ConfigFile] != config:
			return misfit(dir, SummaryFile, ConfigFile)
		case s.SHA256[HistoryFile] != hexSum(content):
			return misfit(dir, SummaryFile, HistoryFile)
		}
		return nil
	}
	saved, err := train.ReadProgress(filepath.Join(dir, CheckpointFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: restore it, or remove it to skip comparing the history", err)
	case saved.Run != r.Config.id():
		return misfit(dir, ConfigFile, CheckpointFile)
	}
	shared := r.History
	if n := len(saved.History); len(shared) == n+1 && shared[n].Step == saved.Step {
		shared = shared[:n] // leave out an unscheduled check at the end of training: Fit saves the checkpoint before it
	}
	n := min(len(shared), len(saved.History))
	if !slices.EqualFunc(shared, saved.History[:n], func(a, b train.Check) bool { return same(a, b) }) {
		return fmt.Errorf("%w; heed train --resume rewrites %s", misfit(dir, HistoryFile, CheckpointFile), HistoryFile)
	}
	r.History = saved.History
	return nil
}

// kept returns the index of the check whose weights are saved.
func kept(s train.StoppingConfig, history []train.Check) int {
	best := s.BestOf(history)
	if s.KeepLast || best < 0 {
		return len(history) - 1
	}
	return best
}

// readSummary reads a folder's summary.json. If there is none, the error wraps fs.ErrNotExist.
func readSummary(fsys fs.FS, dir string) (*Summary, error) {
	content, err := readRegular(fsys, SummaryFile, maxConfig)
	var s Summary
	if err == nil {
		if err = json.Unmarshal(content, &s); err == nil && s.SHA256[SummaryFile] != s.sum() {
			err = fmt.Errorf("its content doesn't match its sha256 of %s", SummaryFile)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s can't be read, or was changed: %w: remove it; --resume writes it again", filepath.Join(dir, SummaryFile), err)
	}
	return &s, nil
}
