package task

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// half is one process of a train.Group with two processes, which are goroutines here.
type half struct {
	rank     int
	out, in  chan [][]byte
	did, has chan struct{} // tell the other half, and are told by it, that the data were copied
}

func halves() [2]half {
	zeroToOne, oneToZero := make(chan [][]byte, 1), make(chan [][]byte, 1)
	did, has := make(chan struct{}, 1), make(chan struct{}, 1)
	return [2]half{{0, zeroToOne, oneToZero, did, has}, {1, oneToZero, zeroToOne, has, did}}
}

func (h half) Rank() int { return h.rank }
func (h half) Size() int { return 2 }

func (h half) Gather(mine, gathered []byte) error {
	copy(gathered[h.rank*len(mine):], mine)
	return h.Swap(1-h.rank, [][]byte{mine}, [][]byte{gathered[(1-h.rank)*len(mine):][:len(mine)]})
}

func (h half) Swap(_ int, send, receive [][]byte) error {
	h.out <- send
	for i, s := range <-h.in {
		copy(receive[i], s)
	}
	h.did <- struct{}{}
	<-h.has
	return nil
}

// Two processes must write the same folder as one process. The second process can't access the folder. Errors about the
// folder must reach both processes.
func TestTrainInAGroup(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, name := range []string{"copy", "seq2seq", "classification", "embed"} {
		t.Run(name, func(t *testing.T) { trainInAGroup(t, small(t, name)) })
	}
}

func trainInAGroup(t *testing.T, c Config) {
	c.Training.MicroBatches, c.Training.MaxEpochs = 2, 2
	alone, dir := filepath.Join(t.TempDir(), "alone"), filepath.Join(t.TempDir(), "run")
	run(t, made(t, c), alone, train.RunOptions{})
	run := func(t *testing.T, c Config, steps int) (summaries [2]*Summary, errs [2]error) {
		var wg sync.WaitGroup
		for i, h := range halves() {
			task := made(t, c)
			folder, log := dir, new(bytes.Buffer)
			if h.rank == 1 {
				folder = filepath.Join(dir, runfolder.ConfigFile, "not here")
			}
			wg.Go(func() {
				summaries[i], errs[i] = task.Train(t.Context(), folder, train.RunOptions{Group: h, MaxSteps: steps, Log: log})
				if h.rank == 1 && log.Len() > 0 {
					t.Errorf("the second process writes %q to its Log, want nothing", log)
				}
			})
		}
		wg.Wait()
		return summaries, errs
	}
	for _, steps := range []int{3, 0} { // interrupt the run, then resume it
		summaries, errs := run(t, c, steps)
		for i, err := range errs {
			if err != nil || summaries[i].Unfinished != (steps > 0) || summaries[i].Because != summaries[0].Because {
				t.Fatalf("process %d after %d steps: %+v, %v", i, steps, summaries[i], err)
			}
		}
	}
	wantFiles(t, dir, alone, runfolder.ConfigFile, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.CheckpointFile)
	_, errs := run(t, c, 0)
	for i, err := range errs {
		if !errors.Is(err, ErrFinished) {
			t.Errorf("process %d: got error %v, want ErrFinished", i, err)
		}
	}
	c.Seed++
	_, errs = run(t, c, 0)
	for _, err := range errs {
		must.Fail(t, err, "holds a run with another configuration")
	}
}

// If the data of two processes differ, both must return an error.
func TestOtherDataInAGroup(t *testing.T) {
	var wg sync.WaitGroup
	var errs [2]error
	dir := filepath.Join(t.TempDir(), "run")
	for i, h := range halves() {
		c := small(t, "tagging")
		c.Training.MicroBatches, c.Data.File = 2, rowsFile(t, c.Task.Kind, 100+i)
		task := made(t, c)
		wg.Go(func() { _, errs[i] = task.Train(t.Context(), dir, train.RunOptions{Group: h}) })
	}
	wg.Wait()
	for _, err := range errs {
		must.Fail(t, err, "process 0 have different settings or data")
	}
}
