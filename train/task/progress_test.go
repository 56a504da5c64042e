package task

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder/runlog"
	"github.com/heed-go/heed/train"
)

// OnCheck must be called for every check and, when a run is resumed, again for the earlier checks. The other functions
// of a RunOptions must be called too.
func TestOnCheck(t *testing.T) {
	t.Parallel()
	c, dir := small(t, "copy"), t.TempDir()
	c.Training.StepsPerEpoch, c.Training.MaxEpochs = 10, 3
	var checks [][2]int // number of epochs in the history, and index of the best
	call := func(steps int) *Summary {
		onCheck := func(history []train.Check, best bool) (bool, error) {
			checks = append(checks, [2]int{len(history), c.Training.Stopping.BestOf(history)})
			if kept := checks[len(checks)-1][1] == len(history)-1; best != kept {
				t.Errorf("OnCheck for check %d: best is %t, want %t", len(history), best, kept)
			}
			want := 10 * len(history)
			if steps > 0 { // the last check is at the limit
				want = min(want, steps)
			}
			if last := history[len(history)-1]; last.Step != want || !last.Validated {
				t.Errorf("check %d of the history is %v, want a validated check after step %d", len(history), last, want)
			}
			return false, nil
		}
		told, saves := 0, 0
		s := run(t, made(t, c), dir, train.RunOptions{
			MaxSteps: steps, OnCheck: onCheck, OnMemory: func(int) { told++ }, BeforeSave: func() error { saves++; return nil },
		})
		if told != 1 || saves == 0 {
			t.Errorf("OnMemory was called %d times, want 1; BeforeSave %d times, want at least 1", told, saves)
		}
		return s
	}
	if call(15); len(checks) != 2 || checks[1][0] != 2 {
		t.Errorf("after an epoch and a half, the checks are %v, want one of the epoch and one at the end", checks)
	}
	checks = nil
	s := call(0)
	if n := len(checks); n != 3 || checks[0] != [2]int{1, 0} || checks[2] != [2]int{3, s.BestEpoch} {
		t.Errorf("after resuming, the checks are %v, want three, the last with epoch %d as the best", checks, s.BestEpoch)
	}
}

// The estimate of the time must come after 3 seconds and 5 steps, not counting the first step, which builds graphs. It
// must tell the time to the first check if that comes before the end of an epoch.
func TestForetell(t *testing.T) {
	for _, test := range []struct {
		name           string
		step           time.Duration
		epochs, every  int
		startsAt, wait int  // step at which training starts; steps of this call before the estimate
		slow           bool // whether the third step takes a second more, to build graphs
		want           string
	}{
		{"fast steps", 100 * time.Millisecond, 3, 0, 0, 31, false, "Time: about 10 s per epoch, at most 30 s for the next 3 epochs, without validation\n"},
		{"another bucket", 100 * time.Millisecond, 1, 0, 0, 21, true, "Time: about 10 s per epoch, without validation\n"},
		{"slow steps", 6 * time.Second, 1, 0, 0, 6, false, "Time: about 10 min per epoch, without validation\n"},
		{"checks within an epoch", time.Second, 0, 26, 0, 6, false, "Time: about 100 s per epoch, 20 s to the first check, without validation\n"},
		{"a check has passed", 100 * time.Millisecond, 0, 10, 0, 31, false, "Time: about 10 s per epoch, without validation\n"},
		{"resumed", time.Second, 3, 50, 150, 6, false, "Time: about 100 s per epoch, at most 3 min for the next 2 epochs, without validation\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := Config{Training: Training{StepsPerEpoch: 100, Config: train.Config{MaxEpochs: test.epochs, CheckEvery: test.every}}}
			var log strings.Builder
			var clock runlog.Clock
			foretell := (&Task{Model: &Model{}, Config: c}).foretell(&log)
			for i := range 2 * test.wait {
				if time.Sleep(test.step); i == 0 {
					time.Sleep(time.Minute)
				}
				if i == 2 && test.slow {
					time.Sleep(time.Second)
				}
				n := test.startsAt + i
				foretell(n/100, n%100, clock.Step())
				if written := log.Len() > 0; written != (i+1 >= test.wait) {
					t.Fatalf("%s: after %d steps, the log is %q, want an estimate after %d", test.name, i+1, log.String(), test.wait)
				}
			}
			if log.String() != test.want {
				t.Errorf("%s: got %q, want %q", test.name, log.String(), test.want)
			}
		})
	}
}

// Progress counts the texts that a frozen encoder reads before training, and those of a file.
func TestModelProgress(t *testing.T) {
	t.Parallel()
	published := publishedFolder(t, "bert")
	task := made(t, fromPublished(t, data.KindClassification, published, "head"))
	last, highest := 0, 0
	count := func(read, inputs int) {
		if read != inputs && read <= last || read > inputs {
			t.Errorf("%d of %d texts after %d", read, inputs, last)
		}
		last, highest = read%inputs, max(highest, read)
	}
	task.Progress = count
	task.made = 5 * time.Second
	s := run(t, task, filepath.Join(t.TempDir(), "run"), train.RunOptions{})
	if rows := task.Problem().Train.Len; highest != rows {
		t.Errorf("before training, the model reads %d texts, want all %d training rows", highest, rows)
	}
	if s.Seconds < 5 {
		t.Errorf("the summary has %g seconds, want those of New, too", s.Seconds)
	}
	m := must.Get(Open(published))(t)
	file := filepath.Join(t.TempDir(), "texts.txt")
	write(t, file, strings.Repeat("a cat\n", 33))
	last, highest = 0, 0
	m.Progress = count
	must.Do(t, EmbedFile(t.Context(), m, file, func([]string, [][]float32) error { return nil }))
	if highest < 32 {
		t.Errorf("of a file, the model reads %d texts, want 32 or 33", highest)
	}
}
