package task

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/runfolder/runlog"
	"github.com/heed-go/heed/train"
)

// ErrNoHistory means that a run ended before its first check, so it has no history. ReadRun wraps it.
var ErrNoHistory = runlog.ErrNoHistory

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

	Baseline map[string]float64 // validation metrics of the simple model, by name, such as accuracy; nil if there is none

	Summary *Summary // nil if the run is unfinished
}

// ReadRun reads the configuration and the history of a finished or unfinished run. If there was no check yet, the error
// wraps ErrNoHistory. The rules are used as in ReadConfig.
//
// In a finished run, the configuration and the history must match the checksums in summary.json. In an unfinished run,
// they must match the header of the checkpoint. If a process was killed between two writes, the history may have one
// check less than the checkpoint, or one more, or there may be no history. Then ReadRun returns the checkpoint's
// history, from which the run would resume. Without a checkpoint, ReadRun compares nothing.
func ReadRun(dir string, rules ...data.Rule) (*Run, error) {
	c, err := ReadConfig(dir, rules...)
	if err != nil {
		return nil, err
	}
	if c.Opened() {
		return nil, fmt.Errorf("%s is a published model, not a run: it has no history", dir)
	}
	var s Summary
	f := runfolder.At(dir)
	record, err := runlog.Read(f, c.id(), &s)
	if err != nil {
		return nil, err
	}
	r := &Run{Config: c, History: record.History, Best: kept(c.Training.Stopping, record.History), Seconds: record.Seconds, Untimed: record.Untimed}
	if record.Finished {
		r.Summary, r.Baseline = &s, s.Baseline
	} else if b, err := c.ReadLinear(f, c.id()); err == nil {
		r.Baseline = b.Values
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r, nil
}

// kept returns the index of the check whose weights are saved.
func kept(s train.StoppingConfig, history []train.Check) int {
	best := s.BestOf(history)
	if s.KeepLast || best < 0 {
		return len(history) - 1
	}
	return best
}
