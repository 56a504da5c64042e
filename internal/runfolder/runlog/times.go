package runlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
)

// A stepTime is a line of times.jsonl: the time per step before a check, without validation. It isn't in the history,
// because histories of runs with the same seed are equal.
type stepTime struct {
	Step    int     `json:"step"` // step of the check
	Seconds float64 `json:"seconds_per_step"`
}

// timesOf decodes times.jsonl. It returns the time of each check in the history, by the check's step, and the number of
// lines that it ignores.
func timesOf(content []byte, history []train.Check) (times map[int]float64, ignored int) {
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
			ignored++
			continue
		}
		times[t.Step], last = t.Seconds, t.Step
	}
	return times, ignored
}

// A Clock measures the time of steps, except for the first step, which is slow because it builds graphs.
type Clock struct {
	last    time.Time     // end of the last step or check; zero before the end of the first step
	steps   int           // number of steps since the last check
	taken   time.Duration // time of these steps
	started bool          // whether this training has written times.jsonl
}

// Step must be called after each step. It returns the time of the step, or 0 for the first step.
func (c *Clock) Step() (taken time.Duration) {
	now := time.Now()
	if !c.last.IsZero() {
		taken = now.Sub(c.last)
		c.steps, c.taken = c.steps+1, c.taken+taken
	}
	c.last = now
	return taken
}

// WriteTimes writes the time before the last check of a history. The first call rewrites times.jsonl, keeping the times
// of earlier checks if the training was resumed. Later calls append a line, without waiting for the disk.
func WriteTimes(w *runfolder.Writer, c *Clock, history []train.Check) (err error) {
	var line []byte
	if c.steps > 0 {
		each := c.taken / time.Duration(c.steps)
		last := stepTime{history[len(history)-1].Step, each.Round(time.Microsecond).Seconds()}
		if line, err = json.Marshal(last); err != nil {
			return err
		}
		line = append(line, '\n')
	}
	defer func() {
		if c.steps, c.taken = 0, 0; !c.last.IsZero() { // a resumed run has a check before the first step
			c.last = time.Now()
		}
	}()
	if c.started {
		return addTo(w.Path(runfolder.TimesFile), line)
	}
	c.started = true
	content, _ := w.Read(runfolder.TimesFile, runfolder.MaxHistory) // nothing depends on unreadable times
	known, _ := timesOf(content, history)
	if line != nil {
		delete(known, history[len(history)-1].Step) // the old time, if this check was repeated
	}
	return w.Write(runfolder.TimesFile, func(file io.Writer) error {
		e := json.NewEncoder(file)
		for _, c := range history {
			if seconds, ok := known[c.Step]; ok {
				if err := e.Encode(stepTime{c.Step, seconds}); err != nil {
					return err
				}
			}
		}
		_, err := file.Write(line)
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
