package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// If --max-epochs or --patience is raised, a run continues, finished or not. It ends with the same bytes as a run that
// had these values from the start.
func TestRaise(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	base := t.TempDir()
	for _, test := range []struct {
		name, flags string
		first, last [2]int // epochs and patience
		raise       string
		steps       int64 // steps before the first part is interrupted; 0: never
	}{
		{"more epochs", "--task=copy", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 0},
		{"an interrupted run", "--task=copy", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 15},
		{"interrupted before the first check", "--task=copy", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 3},
		{"more patience", "--task=copy --learning-rate=3 --warm-up=0 --clip-norm=0", [2]int{9, 1}, [2]int{9, 3}, "--patience=3", 0},
		{"more patience, but no more epochs", "--task=copy", [2]int{2, 5}, [2]int{2, 6}, "--patience=6", 0},
		{"both", "--task=copy", [2]int{1, 2}, [2]int{3, 0}, "--patience=0 --max-epochs=3", 0},
		{"the end isn't a regular check", "--task=copy --check-every=7", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 0},
		{"no check yet", "--task=copy --check-every=13", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 0},
		{"a plateau and an average", "--task=copy --solver=muon --schedule=restarts --warm-up=3 --decay=8 --plateau=1 --average=0.9 --check-every=4", [2]int{1, 0}, [2]int{3, 0}, "--max-epochs=3", 7},
		{"classification", "--task=classification --decay=40 --warm-up=3 --class-weights=balanced", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && !slices.Contains([]string{"more epochs", "a plateau and an average", "classification"}, test.name) {
				t.Skip("other cases run")
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(test.flags, "--task="), " ")
			file := dataFlags(t, name)
			flags := func(dir string, numbers [2]int) []string {
				more := strings.Fields(fmt.Sprintf("%s --max-epochs=%d --patience=%d", test.flags, numbers[0], numbers[1]))
				return small(append(append(more, "--dropout=0.1", "--out="+dir), file...)...)
			}
			dir, want := filepath.Join(base, test.name), filepath.Join(base, test.name+" whole")
			succeed(t, flags(want, test.last)...)
			if test.steps > 0 {
				fail(t, heedContext(cancelled(t, test.steps), flags(dir, test.first)...), 1, "interrupted")
			} else {
				succeed(t, flags(dir, test.first)...)
				fail(t, heed("train", "--resume="+dir), 1, "is finished: there is nothing to resume, unless you raise its epochs or its patience")
			}
			raise := append([]string{"train", "--resume=" + dir}, strings.Fields(test.raise)...)
			// Interrupt the run before its next step, then in the middle, then let it finish. It may have no steps
			// left.
			for _, call := range []called{
				heedContext(cancelled(t, 0), append(raise, "--checkpoint-every=2")...),
				heedContext(cancelled(t, 5), "train", "--resume="+dir),
				heed(raise...),
			} {
				if call.code != 0 && !strings.Contains(call.stderr, "is finished") {
					fail(t, call, 1, "interrupted")
				}
			}
			sameRun(t, dir, want)
		})
	}
	dir := filepath.Join(base, "more epochs")
	before := folder(t, dir)
	fail(t, heed("train", "--resume="+dir, "--max-epochs=3"), 2, "--max-epochs may be raised when a run is resumed, but not lowered: it was 4, got 3")
	fail(t, heed("train", "--resume="+dir, "--patience=2"), 2, "--patience may be raised when a run is resumed, but not lowered: it was 0, which means no limit, got 2")
	interrupted := filepath.Join(base, "interrupted")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--out="+interrupted)...), 1, "interrupted")
	checkpoint := filepath.Join(interrupted, runfolder.CheckpointFile)
	content := []byte(read(t, checkpoint))
	content[len(content)-9] ^= 4
	write(t, checkpoint, string(content))
	damaged := folder(t, interrupted)
	fail(t, heed("train", "--resume="+interrupted, "--max-epochs=9"), 1, checkpoint, "it has changed since it was written")
	unchanged(t, interrupted, damaged)
	config := filepath.Join(base, "classification", runfolder.ConfigFile) // a wrong value that no flag sets
	wrong := regexp.MustCompile(`"sha256": "[0-9a-f]*"\n}`).ReplaceAllString(read(t, config), `"sha256": ""}`)
	write(t, config, regexp.MustCompile(`"steps_per_epoch": [0-9]+`).ReplaceAllString(wrong, `"steps_per_epoch": 999`))
	fail(t, heed("train", "--resume="+filepath.Dir(config), "--max-epochs=9", "--data="+rowsFile(t, "classification")), 1, config+": training.steps_per_epoch must be ", "got 999")
	os.Remove(filepath.Join(dir, runfolder.CheckpointFile))
	fail(t, heed("train", "--resume="+dir, "--max-epochs=9"), 1, "has no checkpoint.safetensors any more")
	delete(before, runfolder.CheckpointFile)
	unchanged(t, dir, before)
}

// With --auto-resume, the same command starts a run, resumes it, and does nothing when it is finished.
func TestAutoResume(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	want, dir := ran(t, "--task=copy"), filepath.Join(base, "run")
	call := small("--task=copy", "--auto-resume", "--out="+dir)
	fail(t, heedContext(cancelled(t, 5), call...), 1, "interrupted")
	must.Have(t, succeed(t, append(call, "--max-steps=17")...), "the limit of 17 steps is reached")
	succeed(t, call...)
	sameRun(t, dir, want)
	prints(t, "The run in "+dir+" is finished\n", call...)
	sameRun(t, dir, want)
	fail(t, heed(append(call, "--seed=2")...), 1, "holds a run with another configuration")
	longer := filepath.Join(base, "longer")
	succeed(t, small("--task=copy", "--max-epochs=5", "--out="+longer)...)
	succeed(t, append(call, "--max-epochs=5")...)
	sameRun(t, dir, longer)
}

// A signal also ends the work before training: here a split of data that never ends.
func TestInterruptedSplit(t *testing.T) {
	sampling, end := make(chan bool, 1), make(chan bool)
	defer close(end)
	rule := data.Rule{
		Name: "slow", Kind: data.KindTagging, Alphabet: "01", MaxLen: 12, Example: "0110",
		Sample: func(rng *rand.Rand, maxLen int) string {
			select {
			case sampling <- true:
			default:
			}
			<-end
			return fmt.Sprintf("%0*b", maxLen, rng.IntN(1<<maxLen))
		},
		Answer: func(source string) (string, error) { return source, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-sampling
		cancel()
	}()
	if _, err := newTask(ctx, task.Defaults(rule)); !errors.Is(err, context.Canceled) {
		t.Errorf("newTask returns error %v, want %v", err, context.Canceled)
	}
}
