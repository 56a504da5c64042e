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
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/train"
)

// A Run is what a run folder says of its training.
type Run struct {
	Config  Config
	History []train.Check // at least one
	Best    int           // the one in History whose weights are kept

	// Seconds has how long a step took before each check, by the clock and without validation, or 0 where that isn't
	// known. No checksum covers it, nor the Summary's Seconds.
	Seconds []float64

	// Untimed is how many lines of times.jsonl aren't in Seconds: they aren't times above 0 of checks in History, in
	// order.
	Untimed int

	Summary *Summary // nil where the run isn't finished
}

// ErrNoHistory says that a run ended before its first check.
var ErrNoHistory = errors.New("has no history: the run ended before its first check")

// maxHistory is the most bytes of a history that are read.
const maxHistory = 1 << 28

// ReadRun reads what a run folder says of its training, be it finished or not. It is an error that wraps ErrNoHistory
// if there was no check yet. The rules are as ReadConfig has them.
//
// In a finished run, the configuration and the history must be those that summary.json has checksums of. In an
// unfinished run, they must be those of the checkpoint, of which only the header is read. A process that was killed
// between two writes may leave a history with a check less than the checkpoint, or one more. Then the checkpoint's
// history counts, as it does when the run is resumed. Without a checkpoint, there is nothing to compare with.
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
	// A training that goes on may write more meanwhile, so what is written last is read first.
	if r.Summary, err = readSummary(fsys, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	times, err := readRegular(fsys, TimesFile, maxHistory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s can't be read, or was changed: %w: remove it, and the run has no times", filepath.Join(dir, TimesFile), err)
	}
	content, err := readRegular(fsys, HistoryFile, maxHistory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %w", dir, ErrNoHistory)
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

// compare compares the configuration and the history, which was read from content, with the summary. In an unfinished
// run it compares them with the checkpoint and takes over its history.
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
		return fmt.Errorf("%w: restore it, or remove it to leave the history uncompared", err)
	case saved.Run != r.Config.id():
		return misfit(dir, ConfigFile, CheckpointFile)
	}
	shared := r.History
	if n := len(saved.History); len(shared) == n+1 && shared[n].Step == saved.Step {
		shared = shared[:n] // without the check at the end of training, where none is scheduled: Fit saves before it
	}
	n := min(len(shared), len(saved.History))
	if !slices.EqualFunc(shared, saved.History[:n], func(a, b train.Check) bool { return same(a, b) }) {
		return fmt.Errorf("%w; heed train --resume writes %s anew", misfit(dir, HistoryFile, CheckpointFile), HistoryFile)
	}
	r.History = saved.History
	return nil
}

// kept returns the number of the check whose weights are kept.
func kept(s train.Stopping, history []train.Check) int {
	best := s.BestOf(history)
	if s.KeepLast || best < 0 {
		return len(history) - 1
	}
	return best
}

// readSummary reads a folder's summary.json. It is an error that wraps fs.ErrNotExist if there is none.
func readSummary(fsys fs.FS, dir string) (*Summary, error) {
	content, err := readRegular(fsys, SummaryFile, maxConfig)
	var s Summary
	if err == nil {
		if err = jsonkeys.Check(content, nil); err == nil {
			d := json.NewDecoder(bytes.NewReader(content))
			d.DisallowUnknownFields()
			err = d.Decode(&s)
		}
		if err == nil && s.SHA256[SummaryFile] != s.sum() {
			err = fmt.Errorf("it isn't what its sha256 of %s is of", SummaryFile)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s can't be read, or was changed: %w: remove it, and --resume writes it anew", filepath.Join(dir, SummaryFile), err)
	}
	return &s, nil
}
