package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/train"
)

// A stepTime is a line of times.jsonl: how long steps took before a check, by the clock, without validation. It is no
// part of the history, which two runs of one seed share.
type stepTime struct {
	Step    int     `json:"step"` // of the check
	Seconds float64 `json:"seconds_per_step"`
}

// stepTimes takes the time of steps.
type stepTimes struct {
	known map[int]float64 // seconds a step, by the step of the check after them
	from  time.Time       // the end of the last check, or of the first step, which isn't counted then
	to    time.Time       // the end of the last step
	steps int             // between
}

// readTimes returns the times that a folder has, which may be none.
func readTimes(fsys fs.FS) (map[int]float64, error) {
	times := map[int]float64{}
	content, err := readRegular(fsys, TimesFile, maxHistory)
	if errors.Is(err, fs.ErrNotExist) {
		return times, nil
	}
	for d := json.NewDecoder(bytes.NewReader(content)); err == nil; {
		var t stepTime
		if err = d.Decode(&t); err == nil {
			times[t.Step] = t.Seconds
		}
	}
	if err != io.EOF {
		return nil, err
	}
	return times, nil
}

// step notes that a step is over.
func (s *stepTimes) step() {
	s.to = time.Now()
	if s.from.IsZero() {
		s.from = s.to
		return
	}
	s.steps++
}

// write writes the times of the checks of a history, when the last of them is over.
func (s *stepTimes) write(dir string, history []train.Check) error {
	if s.known == nil { // a training that goes on
		var err error
		if s.known, err = readTimes(os.DirFS(dir)); err != nil {
			s.known = map[int]float64{} // it decides nothing, and is written anew
		}
	}
	if s.steps > 0 {
		each := s.to.Sub(s.from) / time.Duration(s.steps)
		s.known[history[len(history)-1].Step] = each.Round(time.Microsecond).Seconds()
	}
	err := atomicfile.WriteFile(filepath.Join(dir, TimesFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, c := range history {
			if seconds, ok := s.known[c.Step]; ok {
				if err := e.Encode(stepTime{c.Step, seconds}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.from, s.steps = time.Now(), 0
	return err
}
