package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
)

func TestReadRun(t *testing.T) {
	t.Parallel()
	c := small(t, "copy")
	c.Training.MaxEpochs = 4
	dir := filepath.Join(t.TempDir(), "run")
	run(t, made(t, c), dir, train.RunOptions{MaxTime: 1}) // takes no step
	if _, err := ReadRun(dir); !errors.Is(err, ErrNoHistory) {
		t.Errorf("before the first check: got error %v, want ErrNoHistory", err)
	}
	run(t, made(t, c), dir, train.RunOptions{MaxSteps: c.Training.StepsPerEpoch * 3 / 2})
	r, err := ReadRun(dir)
	if err != nil || r.Summary != nil || len(r.History) != 2 || r.Best != 1 || len(r.Seconds) != 2 || slices.Min(r.Seconds) <= 0 {
		t.Errorf("after an epoch and a half: got %+v, %v, want a history of two checks with their times", r, err)
	}
	first := r.Seconds
	s := run(t, made(t, c), dir, train.RunOptions{})
	r, err = ReadRun(dir)
	if err != nil || r.Summary == nil || r.Summary.Because != s.Because || len(r.History) != 4 || r.History[r.Best].Epoch != s.BestEpoch || r.Config.Training.MaxEpochs != 4 {
		t.Fatalf("after training: got %+v, %v, want a summary and 4 checks", r, err)
	}
	if len(r.Seconds) != 4 || r.Seconds[0] != first[0] || slices.Min(r.Seconds) <= 0 || slices.Max(r.Seconds) > s.Seconds+1 {
		t.Errorf("the times per step are %v s, want 4 with %v still the first", r.Seconds, first)
	}
	if times := read(t, filepath.Join(dir, runfolder.TimesFile)); strings.Count(times, "\n") != 4 {
		t.Errorf("%s is %q, want one line per check", runfolder.TimesFile, times)
	}
	line := func(step int, seconds any) string {
		return fmt.Sprintf("{\"step\":%d,\"seconds_per_step\":%v}\n", step, seconds)
	}
	h := r.History
	for content, want := range map[string]struct {
		seconds []float64
		untimed int
	}{
		"":                           {[]float64{0, 0, 0, 0}, 0},
		"no JSON":                    {[]float64{0, 0, 0, 0}, 1},
		line(h[1].Step, 2) + "{\"st": {[]float64{0, 2, 0, 0}, 1},
		line(h[1].Step, 2) + "no\n" + line(h[2].Step, 3):                        {[]float64{0, 2, 3, 0}, 1},
		line(h[0].Step, 0) + line(h[1].Step, -1) + line(h[2].Step, "1e999"):     {[]float64{0, 0, 0, 0}, 3},
		line(h[0].Step+1, 2) + line(-h[1].Step, 2):                              {[]float64{0, 0, 0, 0}, 2},
		line(h[1].Step, 2) + line(h[0].Step, 3) + line(h[1].Step, 4):            {[]float64{0, 2, 0, 0}, 2},
		strings.Replace(line(h[0].Step, 2), "step", "Step", 1):                  {[]float64{0, 0, 0, 0}, 1},
		strings.Replace(line(h[0].Step, 2), "{", "{\"seconds_per_step\":5,", 1): {[]float64{0, 0, 0, 0}, 1},
	} {
		for _, file := range []string{runfolder.TimesFile, runfolder.ReportFile} {
			write(t, filepath.Join(dir, file), content)
		}
		if got, err := ReadRun(dir); err != nil || !slices.Equal(got.Seconds, want.seconds) || got.Untimed != want.untimed {
			t.Errorf("%s is %q: got %+v, %v, want the times %v and %d ignored lines", runfolder.TimesFile, content, got, err, want.seconds, want.untimed)
		}
	}
	if _, err := made(t, c).Train(t.Context(), dir, train.RunOptions{}); !errors.Is(err, ErrFinished) {
		t.Errorf("after changing the times and the report: got error %v, want ErrFinished", err)
	}
	must.Do(t, os.Remove(filepath.Join(dir, runfolder.TimesFile)))
	if r, err := ReadRun(dir); err != nil || slices.Max(r.Seconds) != 0 || len(r.Seconds) != 4 {
		t.Errorf("without times: got %+v, %v, want 4 times of 0", r, err)
	}
	write(t, filepath.Join(dir, runfolder.HistoryFile), "{\"epoch\":0}\n{\"epo")
	_, err = ReadRun(dir) // the history ends inside a line
	must.Fail(t, err, runfolder.HistoryFile+" can't be read, or was changed: check 2: ")
}

// ReadRun must return an error if the history doesn't match the summary or, in an unfinished run, the checkpoint. A
// difference that a killed process can leave must not be an error.
func TestReadRunComparesHistory(t *testing.T) {
	t.Parallel()
	c := small(t, "copy")
	c.Training.StepsPerEpoch, c.Training.MaxEpochs, c.Training.CheckEvery = 10, 3, 7 // checks after 7, 14, 21, 28 and, at the end, 30 steps
	base := t.TempDir()
	folder := func(name string, seed uint64, steps int) string {
		c := c
		c.Seed = seed
		dir := filepath.Join(base, name)
		run(t, made(t, c), dir, train.RunOptions{MaxSteps: steps})
		return dir
	}
	read := func(dir, name string) string { return read(t, filepath.Join(dir, name)) }
	one, two, foreign := folder("one", 1, 7), folder("two", 1, 14), folder("foreign", 2, 14)
	between, finished := folder("between", 1, 24), folder("finished", 1, 0)
	lines := slices.Collect(strings.Lines(read(finished, runfolder.HistoryFile)))
	if len(lines) != 5 {
		t.Fatalf("the history is %q, want 5 checks", lines)
	}
	first := func(n int) string { return strings.Join(lines[:n], "") }
	edited := strings.Replace(first(2), `"train_loss":`, `"train_loss":1`, 1)
	late := strings.Replace(first(2), `"step":7,`, `"step":8,`, 1)
	for _, test := range []struct {
		name, dir, file, content string
		checks                   int // wanted number of checks, or 0 for an error
		want                     string
	}{
		{"an edited number", finished, runfolder.HistoryFile, strings.Replace(first(5), `"train_loss":`, `"train_loss":1`, 1), 0, runfolder.SummaryFile + " and " + runfolder.HistoryFile},
		{"one line less", finished, runfolder.HistoryFile, first(4), 0, runfolder.SummaryFile + " and " + runfolder.HistoryFile},
		{"another seed's", finished, runfolder.HistoryFile, read(foreign, runfolder.HistoryFile), 0, runfolder.SummaryFile + " and " + runfolder.HistoryFile},
		{"an added empty line", finished, runfolder.HistoryFile, first(5) + "\n", 0, runfolder.SummaryFile + " and " + runfolder.HistoryFile},
		{"another seed's configuration", finished, runfolder.ConfigFile, read(foreign, runfolder.ConfigFile), 0, runfolder.SummaryFile + " and " + runfolder.ConfigFile},
		{"another seed's configuration", two, runfolder.ConfigFile, read(foreign, runfolder.ConfigFile), 0, runfolder.ConfigFile + " and " + runfolder.CheckpointFile},
		{"an edited summary", finished, runfolder.SummaryFile, strings.Replace(read(finished, runfolder.SummaryFile), `"epochs": 3`, `"epochs": 4`, 1), 0, runfolder.SummaryFile},
		{"another seed's checkpoint, which isn't read", finished, runfolder.CheckpointFile, read(foreign, runfolder.CheckpointFile), 5, ""},

		{"an edited number", two, runfolder.HistoryFile, edited, 0, runfolder.HistoryFile + " and " + runfolder.CheckpointFile},
		{"an edited step", two, runfolder.HistoryFile, late, 0, runfolder.HistoryFile + " and " + runfolder.CheckpointFile},
		{"another seed's", two, runfolder.HistoryFile, read(foreign, runfolder.HistoryFile), 0, runfolder.HistoryFile + " and " + runfolder.CheckpointFile},
		{"one line more", two, runfolder.HistoryFile, first(3), 0, runfolder.HistoryFile + " and " + runfolder.CheckpointFile},
		{"an earlier checkpoint", two, runfolder.CheckpointFile, read(one, runfolder.CheckpointFile), 0, runfolder.HistoryFile + " and " + runfolder.CheckpointFile},
		{"another seed's checkpoint", two, runfolder.CheckpointFile, read(foreign, runfolder.CheckpointFile), 0, runfolder.ConfigFile + " and " + runfolder.CheckpointFile},
		{"half a checkpoint", two, runfolder.CheckpointFile, read(two, runfolder.CheckpointFile)[:5000], 0, runfolder.CheckpointFile},
		{"one check less than the checkpoint", two, runfolder.HistoryFile, first(1), 2, ""},
		{"an empty history", two, runfolder.HistoryFile, "", 2, ""},
		{"one check more than the checkpoint", between, runfolder.HistoryFile, first(3) + strings.Replace(lines[4], `"step":30`, `"step":24`, 1), 4, ""},
	} {
		t.Run(filepath.Base(test.dir)+" "+test.name, func(t *testing.T) {
			path := filepath.Join(test.dir, test.file)
			good := read(test.dir, test.file)
			write(t, path, test.content)
			r, err := ReadRun(test.dir)
			if test.checks == 0 {
				must.Fail(t, err, test.want, test.dir)
			} else if err != nil || len(r.History) != test.checks || r.History[0].Step != 7 {
				t.Errorf("got %+v, %v, want %d checks", r, err, test.checks)
			}
			write(t, path, good)
		})
	}
	// A process that is killed after the last check and before the summary leaves such a folder. The checkpoint doesn't
	// have that check, but the history and the weights do.
	must.Do(t, os.Remove(filepath.Join(finished, runfolder.SummaryFile)))
	if r, err := ReadRun(finished); err != nil || len(r.History) != 5 {
		t.Errorf("without a summary: got %+v, %v, want 5 checks", r, err)
	}
	run(t, made(t, c), finished, train.RunOptions{})
	if r, err := ReadRun(finished); err != nil || len(r.History) != 5 || read(finished, runfolder.HistoryFile) != first(5) {
		t.Errorf("resumed: got %+v, %v, want 5 checks", r, err)
	}
	must.Do(t, os.Remove(filepath.Join(two, runfolder.CheckpointFile)))
	if r, err := ReadRun(two); err != nil || len(r.History) != 2 {
		t.Errorf("without a checkpoint: got %+v, %v, want 2 checks", r, err)
	}
}

// kept must find the check whose weights are saved from the history.
func TestKeptCheck(t *testing.T) {
	history := []train.Check{
		{TrainLoss: 3, ValLoss: 3, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.1}},
		{TrainLoss: 2, ValLoss: 1, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.3}},
		{TrainLoss: 1, ValLoss: 2, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.2}},
		{TrainLoss: 1, ValLoss: 1, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.4}},
	}
	without := []train.Check{{TrainLoss: 3}, {TrainLoss: 1}, {TrainLoss: 2}}
	for name, c := range map[string]struct {
		stopping train.StoppingConfig
		history  []train.Check
		want     int
	}{
		"validation loss": {train.StoppingConfig{}, history, 1},
		"training loss":   {train.StoppingConfig{Monitor: "train_loss"}, history, 2},
		"accuracy":        {train.StoppingConfig{Monitor: "val_accuracy", Mode: "max"}, history, 3},
		"last":            {train.StoppingConfig{KeepLast: true}, history, 3},
		"delta":           {train.StoppingConfig{MinDelta: 5}, history, 0},
		"none counts":     {train.StoppingConfig{FirstCheck: 9}, history, 3},
		"no validation":   {train.StoppingConfig{}, without, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kept(c.stopping, c.history); got != c.want {
				t.Errorf("got check %d, want %d", got, c.want)
			}
		})
	}
}
