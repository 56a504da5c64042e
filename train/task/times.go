package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/train"
)

// A stepTime is a line of times.jsonl: the time per step before a check, without validation. It isn't in the history,
// because histories of runs with the same seed are equal.
type stepTime struct {
	Step    int     `json:"step"` // step of the check
	Seconds float64 `json:"seconds_per_step"`
}

// stepTimes measures the time of steps, except for the first step, which is slow because it builds graphs.
type stepTimes struct {
	last  time.Time     // end of the last step or check; zero before the end of the first step
	steps int           // number of steps since the last check
	taken time.Duration // time of these steps
	begun bool          // whether this training has written the file
}

// timesOf returns the times in the content of times.jsonl, by the steps of the checks in the history, and the number of
// other lines.
func timesOf(content []byte, history []train.Check) (times map[int]float64, besides int) {
	checks := map[int]bool{}
	for _, c := range history {
		checks[c.Step] = true
	}
	times = map[int]float64{}
	last := 0
	for line := range bytes.Lines(content) {
		var t stepTime
		err := jsonkeys.Check(line, func(key string) bool { return key == "step" || key == "seconds_per_step" })
		if err == nil {
			err = json.Unmarshal(line, &t)
		}
		if err != nil || !checks[t.Step] || t.Step <= last || t.Seconds <= 0 {
			besides++
			continue
		}
		times[t.Step], last = t.Seconds, t.Step
	}
	return times, besides
}

// step is called after each step. It returns the time of the step, or 0 for the first step.
func (s *stepTimes) step() (taken time.Duration) {
	now := time.Now()
	if !s.last.IsZero() {
		taken = now.Sub(s.last)
		s.steps, s.taken = s.steps+1, s.taken+taken
	}
	s.last = now
	return taken
}

// write writes the time before the last check of a history. The first call rewrites the file, keeping the times of
// earlier checks if the training was resumed. Later calls append a line, without waiting for the disk.
func (s *stepTimes) write(dir string, history []train.Check) (err error) {
	var line []byte
	if s.steps > 0 {
		each := s.taken / time.Duration(s.steps)
		last := stepTime{history[len(history)-1].Step, each.Round(time.Microsecond).Seconds()}
		if line, err = json.Marshal(last); err != nil {
			return err
		}
		line = append(line, '\n')
	}
	defer func() {
		if s.steps, s.taken = 0, 0; !s.last.IsZero() { // a resumed run has a check before the first step
			s.last = time.Now()
		}
	}()
	path := filepath.Join(dir, TimesFile)
	if s.begun {
		return addTo(path, line)
	}
	s.begun = true
	content, _ := readRegular(os.DirFS(dir), TimesFile, maxHistory) // nothing depends on unreadable times
	known, _ := timesOf(content, history)
	if line != nil {
		delete(known, history[len(history)-1].Step) // the old time, if this check was repeated
	}
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, c := range history {
			if seconds, ok := known[c.Step]; ok {
				if err := e.Encode(stepTime{c.Step, seconds}); err != nil {
					return err
				}
			}
		}
		_, err := w.Write(line)
		return err
	})
}

// addTo appends to a file.
func addTo(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return cmp.Or(err, f.Close())
}
