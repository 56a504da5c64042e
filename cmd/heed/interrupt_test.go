package main

import (
	"bufio"
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
	"time"

	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// countdown is a context that is cancelled once Err has been asked for so often: at the same place in every run.
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

// cancelled is cancelled after so many steps. Every training and validation batch is one.
func cancelled(t *testing.T, steps int64) context.Context {
	c := &countdown{Context: t.Context()}
	c.left.Store(steps)
	return c
}

// The number of workers changes no byte, nor does a change of it when a run is resumed.
func TestWorkers(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	flags := func(dir string, workers int) []string {
		return small("--task=dates", "--dropout=0.1", "--micro-batches=4", fmt.Sprint("--workers=", workers), "--out="+dir)
	}
	want := filepath.Join(base, "1")
	succeed(t, flags(want, 1)...)
	for _, workers := range []int{0, 2} {
		dir := filepath.Join(base, fmt.Sprint("workers", workers))
		succeed(t, flags(dir, workers)...)
		sameRun(t, dir, want)
	}
	dir := filepath.Join(base, "resumed")
	fail(t, heedContext(cancelled(t, 17), flags(dir, 4)...), 1, "interrupted")
	succeed(t, "train", "--resume="+dir, "--workers=2")
	sameRun(t, dir, want)
}

func TestInterruptAndResume(t *testing.T) {
	t.Parallel()
	flags := func(dir string) []string { return small("--task=copy", "--dropout=0.1", "--out="+dir) }
	want := ran(t, "--task=copy", "--dropout=0.1")

	// An epoch of these runs has 10 steps and 2 validation batches. Package train ends runs anywhere.
	for name, steps := range map[string]int64{
		"before the first step":  0,
		"at an epoch's end":      12,
		"in the last validation": 35,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			c := heedContext(cancelled(t, steps), flags(dir)...)
			fail(t, c, 1, "interrupted: heed train --resume "+shell(dir))
			if _, err := os.Stat(filepath.Join(dir, task.SummaryFile)); err == nil {
				t.Error("the interrupted run has a summary")
			}
			for steps := int64(1); steps < 200; steps += 5 { // again and again, a little further each time
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

// A signal ends training between two steps.
func TestSignals(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("processes can't be sent signals here")
	}
	base := t.TempDir()
	flags := func(dir string) []string { return small("--task=copy", "--steps-per-epoch=150", "--out="+dir) }
	want := filepath.Join(base, "whole")
	succeed(t, flags(want)...)
	for i, signal := range append([]os.Signal{os.Interrupt, syscall.SIGTERM}, notice...) {
		t.Run(signal.String(), func(t *testing.T) {
			status, words := 1, "interrupted"
			if i == 2 {
				status, words = 3, "ended on notice, by SIGUSR1"
			}
			dir := filepath.Join(t.TempDir(), "run")
			cmd := process(flags(dir)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "Epoch 0") {
					time.Sleep(5 * time.Millisecond) // into the next epoch, if the machine is quick
					cmd.Process.Signal(signal)
				}
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 0 { // 0: it was done before
				fail(t, called{code, "", stderr.String()}, status, words+": heed train --resume "+shell(dir))
				succeed(t, "train", "--resume="+dir)
			}
			sameRun(t, dir, want)
		})
	}
}

// whole checks that every file of a run folder is whole, where it is there.
func whole(dir string) error {
	for _, name := range []string{task.ConfigFile, task.SummaryFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && !json.Valid(b) {
			return errors.New(name + " is half-written")
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, task.HistoryFile))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		for err == nil {
			var v map[string]any
			err = d.Decode(&v)
		}
		if err != io.EOF || !bytes.HasSuffix(b, []byte("}\n")) {
			return errors.New(task.HistoryFile + " is half-written")
		}
	}
	for _, name := range []string{task.WeightsFile, task.CheckpointFile} {
		if _, _, err := safetensors.ReadFile(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// While a run goes on and when it is killed at any moment, its files are whole and fit each other. It goes on to the
// same bytes.
func TestKillAndResume(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	kills := 25
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
		if _, err := os.Stat(filepath.Join(dir, task.ConfigFile)); err != nil {
			args = flags(dir)
		}
		cmd := process(args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
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
			default:
			}
			if err := whole(dir); err != nil {
				t.Fatalf("kill %d: %v", kill, err)
			}
			if _, err := task.ReadRun(dir); err != nil && !errors.Is(err, task.ErrNoHistory) && !strings.Contains(err.Error(), "isn't a run folder") {
				t.Fatalf("kill %d: %v", kill, err)
			}
			if ended == nil {
				if err != nil {
					t.Fatalf("kill %d: it ended by itself: %v: %s", kill, err, stderr.String())
				}
				break
			}
		}
		if _, err := os.Stat(filepath.Join(dir, task.SummaryFile)); err == nil { // done, or all but: once more from the start
			if c := heed("train", "--resume="+dir); c.code != 0 {
				fail(t, c, 1, "finished")
			}
			sameRun(t, dir, want)
			os.RemoveAll(dir)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, task.ConfigFile)); err == nil {
		succeed(t, "train", "--resume="+dir)
		sameRun(t, dir, want)
	}
}

// onLine is a writer that calls do when it is written such a line.
type onLine struct {
	prefix string
	do     func()
}

func (w *onLine) Write(b []byte) (int, error) {
	if w.do != nil && strings.HasPrefix(string(b), w.prefix) {
		w.do()
		w.do = nil
	}
	return len(b), nil
}

// When a file can't be written, be it at the start or later, training ends with an error and can be resumed.
func TestFilesThatCantBeWritten(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	want := ran(t, "--task=copy")
	for _, file := range []string{task.CheckpointFile, task.WeightsFile, task.HistoryFile, task.TimesFile, task.SummaryFile} {
		for _, line := range []string{"Training", "Epoch 1"} {
			t.Run(file+" from "+line, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				block := filepath.Join(dir, file)
				var stderr bytes.Buffer
				code := run(t.Context(), small("--task=copy", "--out="+dir), &onLine{line, func() {
					os.Remove(block)
					os.MkdirAll(filepath.Join(block, "in the way"), 0o777) // no file takes the place of a folder
				}}, &stderr)
				fail(t, called{code, "", stderr.String()}, 1, file)
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					if strings.HasPrefix(e.Name(), ".") {
						t.Errorf("%s is left behind", e.Name())
					}
				}
				os.RemoveAll(block)
				succeed(t, "train", "--resume="+dir)
				sameRun(t, dir, want)
			})
		}
	}
}

// A checkpoint that isn't this run's, or isn't whole, is an error, and not trained on from.
func TestDamagedCheckpoints(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir, other := filepath.Join(base, "run"), filepath.Join(base, "other")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--out="+dir)...), 1, "interrupted")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--dim=8", "--out="+other)...), 1, "interrupted")
	path := filepath.Join(dir, task.CheckpointFile)
	good := read(t, path)
	for name, content := range map[string]string{
		"empty":           "",
		"half":            good[:len(good)/2],
		"a byte short":    good[:len(good)-1],
		"weights":         read(t, filepath.Join(dir, task.WeightsFile)),
		"another model's": read(t, filepath.Join(other, task.CheckpointFile)),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, content)
			fail(t, heed("train", "--resume="+dir), 1, task.CheckpointFile)
			if read(t, path) != content {
				t.Error("it was overwritten")
			}
		})
	}
	write(t, path, good)
	write(t, filepath.Join(dir, ".model.safetensors.tmp-123"), "what a killed process left")
	write(t, filepath.Join(dir, "notes.txt"), "mine")
	succeed(t, "train", "--resume="+dir)
	files := folder(t, dir)
	if _, ok := files[".model.safetensors.tmp-123"]; ok || files["notes.txt"] != "mine" || len(files) != 8 {
		t.Errorf("the folder holds %d files, want the run's seven and notes.txt", len(files))
	}
}

// Resuming writes the best weights again, should they be lost, though no epoch may improve on them any more.
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
		t.Fatalf("the summary is %+v, want an early stop", s)
	}
	fail(t, heedContext(cancelled(t, int64(12*(s.Epochs-1)+3)), flags(dir)...), 1, "interrupted") // in the last epoch
	if err := os.Remove(filepath.Join(dir, task.WeightsFile)); err != nil {
		t.Fatal(err)
	}
	succeed(t, "train", "--resume="+dir)
	sameRun(t, dir, want)
}
