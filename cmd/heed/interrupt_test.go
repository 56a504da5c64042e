package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// countdown is a context that is cancelled after a number of calls of Err. So it interrupts every run at the same
// place.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// cancelled returns a context that is cancelled after a number of steps. Each training or validation batch is a step.
func cancelled(t *testing.T, steps int64) context.Context {
	c := &countdown{Context: t.Context()}
	c.left.Store(steps)
	return c
}

func TestInterruptAndResume(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	flags := func(dir string) []string {
		return small("--task=copy", "--dropout=0.1", "--validation=300", "--out="+dir)
	}
	want := ran(t, "--task=copy", "--dropout=0.1", "--validation=300")

	// An epoch of these runs has 10 steps and 2 validation batches. Package train tests runs that end at any step.
	for name, steps := range map[string]int64{
		"before the first step":  0,
		"at an epoch's end":      12,
		"in the last validation": 35,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			c := heedContext(cancelled(t, steps), flags(dir)...)
			fail(t, c, 1, "interrupted: heed train --resume "+shell(dir))
			absent(t, filepath.Join(dir, runfolder.SummaryFile))
			for steps := int64(1); steps < 200; steps += 5 { // interrupt again and again, later each time
				if c = heedContext(cancelled(t, steps), "train", "--resume="+dir); c.code == 0 {
					break
				}
				fail(t, c, 1, "interrupted")
			}
			sameRun(t, dir, want)
		})
	}

	fail(t, heedContext(cancelled(t, 1), "eval", want), 1, "interrupted")
	fail(t, heedContext(cancelled(t, 0), "predict", want, "abc"), 1, "interrupted")
}

// A signal ends training between two steps, with its status and message.
func TestSignals(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows can't send these signals")
	}
	base := t.TempDir()
	flags := func(dir string) []string { return small("--task=copy", "--steps-per-epoch=150", "--out="+dir) }
	want := filepath.Join(base, "whole")
	succeed(t, flags(want)...)
	for i, signal := range append([]os.Signal{os.Interrupt, syscall.SIGTERM}, notice...) {
		t.Run(signal.String(), func(t *testing.T) {
			status, words := 1, "interrupted"
			if i == 2 {
				status, words = 3, "ended by SIGUSR1"
			}
			dir := filepath.Join(t.TempDir(), "run")
			cmd := process(flags(dir)...)
			cmd.Stdout = writerFunc(func(b []byte) (int, error) {
				if strings.Contains(string(b), "Epoch 0") {
					time.Sleep(5 * time.Millisecond) // reach the next epoch if the machine is fast
					cmd.Process.Signal(signal)
				}
				return len(b), nil
			})
			if c := ended(cmd); c.code != 0 { // 0: the run ended before the signal
				fail(t, c, status, words+": heed train --resume "+shell(dir))
				succeed(t, "train", "--resume="+dir)
			}
			sameRun(t, dir, want)
		})
	}
}

// The last words of a job's first process say how to go on: with --resume, unless the run is finished.
func TestLastWords(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	for name, c := range map[string]struct {
		steps int64
		want  string
	}{
		"interrupted": {5, ": heed train --resume " + shell(dir) + " continues the run\n"},
		"finished":    {1000, ": the run is complete, but may have no report: heed report " + shell(dir) + " writes it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			defer os.RemoveAll(dir)
			var stderr, out bytes.Buffer
			line := &oneWrite{Writer: &stderr}
			run(cancelled(t, c.steps), nil, small("--task=copy", "--max-epochs=1", "--out="+dir), &out, line)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				stderr.Reset()
				last := lastWords(ctx, &stderr)
				last.(*oneWrite).advice.Store(line.advice.Load())
				cancel(errInterrupted)
				time.Sleep(time.Second)
				fmt.Fprintln(last, "more")
			})
			if want := "heed: interrupted, or another process of the job has ended" + c.want; stderr.String() != want {
				t.Errorf("the last words are %q, want %q", stderr.String(), want)
			}
		})
	}
}

// whole returns an error if a file of a run folder is incomplete. Missing files are allowed.
func whole(dir string) error {
	for _, name := range []string{runfolder.ConfigFile, runfolder.SummaryFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && !json.Valid(b) {
			return errors.New(name + " is incomplete")
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, runfolder.HistoryFile))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		for err == nil {
			var v map[string]any
			err = d.Decode(&v)
		}
		if err != io.EOF || !bytes.HasSuffix(b, []byte("}\n")) {
			return errors.New(runfolder.HistoryFile + " is incomplete")
		}
	}
	for _, name := range []string{runfolder.WeightsFile, runfolder.CheckpointFile} {
		if _, _, err := safetensors.ReadFile(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// During a run, and after a kill at any moment, the run's files are complete and belong together. The resumed run ends
// with the same bytes.
func TestKillAndResume(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	kills := 12
	if testing.Short() {
		kills = 3
	}
	base := t.TempDir()
	flags := func(dir string) []string {
		return []string{"train", "--task=copy", "--dim=32", "--batch-size=4", "--steps-per-epoch=2", "--max-epochs=40", "--validation=50", "--patience=0", "--out=" + dir}
	}
	want := filepath.Join(base, "whole")
	succeed(t, flags(want)...)
	dir := filepath.Join(base, "killed")
	rng := rand.New(rand.NewPCG(1, 1))
	for kill := 0; kill < kills; kill++ {
		args := []string{"train", "--resume=" + dir}
		if _, err := os.Stat(filepath.Join(dir, runfolder.ConfigFile)); err != nil {
			args = flags(dir)
		}
		cmd := process(args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		must.Do(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for after := time.After(time.Duration(rng.IntN(120)) * time.Millisecond); ; {
			var err error
			select {
			case err = <-ended:
				ended = nil
			case <-after:
				cmd.Process.Kill()
				<-ended
				ended = nil
			case <-time.After(time.Millisecond):
			}
			if err := whole(dir); err != nil {
				t.Fatalf("kill %d: %v", kill, err)
			}
			if _, err := task.ReadRun(dir); err != nil && !errors.Is(err, task.ErrNoHistory) && !strings.Contains(err.Error(), "isn't a run folder") && !strings.Contains(err.Error(), "there is no such folder") {
				t.Fatalf("kill %d: %v", kill, err)
			}
			if ended == nil {
				if err != nil {
					t.Fatalf("kill %d: the run failed by itself: %v: %s", kill, err, stderr.String())
				}
				break
			}
		}
		if _, err := os.Stat(filepath.Join(dir, runfolder.SummaryFile)); err == nil { // finished, or nearly: start again
			if c := heed("train", "--resume="+dir); c.code != 0 {
				fail(t, c, 1, "finished")
			}
			sameRun(t, dir, want)
			os.RemoveAll(dir)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, runfolder.ConfigFile)); err == nil {
		succeed(t, "train", "--resume="+dir)
		sameRun(t, dir, want)
	}
}

// If a file can't be written, at the start or later, training ends with an error and can be resumed.
func TestFilesThatCantBeWritten(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	want := ran(t, "--task=copy")
	for _, file := range []string{runfolder.CheckpointFile, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.TimesFile, runfolder.SummaryFile} {
		for _, line := range []string{"Training", "Epoch 1"} {
			t.Run(file+" from "+line, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				block := filepath.Join(dir, file)
				blocker := writerFunc(func(b []byte) (int, error) {
					if strings.HasPrefix(string(b), line) {
						os.Remove(block)
						os.MkdirAll(filepath.Join(block, "in the way"), 0o777) // a file can't replace a folder
					}
					return len(b), nil
				})
				fail(t, heedTo(t.Context(), blocker, small("--task=copy", "--out="+dir)...), 1, file)
				for _, e := range must.Get(os.ReadDir(dir))(t) {
					if strings.HasPrefix(e.Name(), ".") {
						t.Errorf("the temporary file %s is left", e.Name())
					}
				}
				os.RemoveAll(block)
				succeed(t, "train", "--resume="+dir)
				sameRun(t, dir, want)
			})
		}
	}
}

// If the best weights are lost, resuming writes them again, even if no later epoch is better.
func TestResumeWithoutWeights(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	flags := func(dir string) []string {
		return small("--task=copy", "--max-epochs=50", "--patience=2", "--learning-rate=3", "--warm-up=0", "--clip-norm=0", "--out="+dir)
	}
	want, dir := filepath.Join(base, "whole"), filepath.Join(base, "run")
	succeed(t, flags(want)...)
	s, _ := readRun(t, want)
	if !s.StoppedEarly {
		t.Fatalf("the summary is %+v, want StoppedEarly", s)
	}
	fail(t, heedContext(cancelled(t, int64(12*(s.Epochs-1)+3)), flags(dir)...), 1, "interrupted") // in the last epoch
	must.Do(t, os.Remove(filepath.Join(dir, runfolder.WeightsFile)))
	succeed(t, "train", "--resume="+dir)
	sameRun(t, dir, want)
}
