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
	// known.
	Seconds []float64

	Summary *Summary // nil where the run isn't finished
}

// ErrNoHistory says that a run ended before its first check.
var ErrNoHistory = errors.New("has no history: the run ended before its first check")

// maxHistory is the most bytes of a history that are read.
const maxHistory = 1 << 28

// ReadRun reads what a run folder says of its training, be it finished or not. It is an error that wraps ErrNoHistory
// if there was no check yet. The rules are as ReadConfig has them.
func ReadRun(dir string, rules ...data.Rule) (*Run, error) {
	fsys := os.DirFS(dir)
	c, err := readConfig(fsys, dir, rules)
	if err != nil {
		return nil, err
	}
	r := &Run{Config: c}
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
	if len(r.History) == 0 {
		return nil, fmt.Errorf("%s %w", dir, ErrNoHistory)
	}
	r.Best = kept(c.Training.Stopping, r.History)
	times, err := readTimes(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s can't be read, or was changed: %w: remove it, and the run has no times", filepath.Join(dir, TimesFile), err)
	}
	for _, check := range r.History {
		r.Seconds = append(r.Seconds, times[check.Step])
	}
	if r.Summary, err = readSummary(fsys, dir); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

// kept returns the number of the check whose weights are kept.
func kept(s train.Stopping, history []train.Check) int {
	best := bestOf(history, &train.EarlyStopping{Stopping: s})
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
