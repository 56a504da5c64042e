package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// A run, finished or not, goes on with more epochs or more patience to the bytes of one that had them from the start.
func TestRaise(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	const text = "--task=text --max-epochs=%d --patience=%d"
	for _, test := range []struct {
		name, flags string // with epochs and patience
		from, to    [2]int
		raise       string
		steps       int64 // after which the first part is interrupted; 0 for none
	}{
		{"more epochs", "--task=copy --max-epochs=%d --patience=%d", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 0},
		{"of an interrupted run", "--task=copy --max-epochs=%d --patience=%d", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 15},
		{"before its first check", "--task=copy --max-epochs=%d --patience=%d", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 3},
		{"more patience", "--task=copy --max-epochs=%d --patience=%d --learning-rate=3 --warm-up=0 --clip-norm=0", [2]int{9, 1}, [2]int{9, 3}, "--patience=3", 0},
		{"no epoch with more patience", "--task=copy --max-epochs=%d --patience=%d", [2]int{2, 5}, [2]int{2, 6}, "--patience=6", 0},
		{"both", "--task=copy --max-epochs=%d --patience=%d", [2]int{1, 2}, [2]int{3, 0}, "--patience=0 --max-epochs=3", 0},
		{"where the end was no check of its own", "--task=copy --check-every=7 --max-epochs=%d --patience=%d", [2]int{2, 0}, [2]int{4, 0}, "--max-epochs=4", 0},
		{"where there was no check yet", "--task=copy --check-every=13 --max-epochs=%d --patience=%d", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 0},
		{"with a plateau and an average", "--task=copy --solver=muon --schedule=restarts --warm-up=3 --decay=8 --plateau=1 --average=0.9 --check-every=4 --max-epochs=%d --patience=%d", [2]int{1, 0}, [2]int{3, 0}, "--max-epochs=3", 7},
		{"with momentum", "--task=copy --solver=sgd,momentum=0.9 --learning-rate=0.1 --max-epochs=%d --patience=%d", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 0},
		{"of text", text, [2]int{1, 0}, [2]int{3, 0}, "--max-epochs=3", 0},
		{"of pairs", "--task=seq2seq --decay=40 --warm-up=3 --max-epochs=%d --patience=%d", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 0},
		{"of labels", "--task=classification --decay=40 --warm-up=3 --class-weights=balanced --max-epochs=%d --patience=%d", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 7},
		{"of tags", "--task=tagging --decay=40 --warm-up=3 --max-epochs=%d --patience=%d", [2]int{1, 0}, [2]int{2, 0}, "--max-epochs=2", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && !slices.Contains([]string{"more epochs", "with a plateau and an average", "of labels"}, test.name) {
				t.Skip("others are tried")
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(test.flags, "--task="), " ")
			file := dataFlags(t, name)
			flags := func(dir string, numbers [2]int) []string {
				more := strings.Fields(fmt.Sprintf(test.flags, numbers[0], numbers[1]))
				return small(append(append(more, "--dropout=0.1", "--out="+dir), file...)...)
			}
			dir, want := filepath.Join(base, test.name), filepath.Join(base, test.name+" whole")
			succeed(t, flags(want, test.to)...)
			if test.steps > 0 {
				fail(t, heedContext(cancelled(t, test.steps), flags(dir, test.from)...), 1, "interrupted")
			} else {
				succeed(t, flags(dir, test.from)...)
				fail(t, heed("train", "--resume="+dir), 1, "is finished: there is nothing to resume, unless you raise its epochs or its patience")
			}
			raise := append([]string{"train", "--resume=" + dir}, strings.Fields(test.raise)...)
			// Interrupted before it goes on, then within, then not at all; where no step is left it is done at once.
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
	checkpoint := filepath.Join(interrupted, task.CheckpointFile)
	content := []byte(read(t, checkpoint))
	content[len(content)-9] ^= 4
	write(t, checkpoint, string(content))
	damaged := folder(t, interrupted)
	fail(t, heed("train", "--resume="+interrupted, "--max-epochs=9"), 1, checkpoint, "it has changed since it was written")
	if !maps.Equal(folder(t, interrupted), damaged) {
		t.Error("what can't go on has changed the folder")
	}
	config := filepath.Join(base, "of labels", task.ConfigFile) // whose fault it is if no flag has it
	wrong := regexp.MustCompile(`"sha256": "[0-9a-f]*"\n}`).ReplaceAllString(read(t, config), `"sha256": ""}`)
	write(t, config, regexp.MustCompile(`"steps_per_epoch": [0-9]+`).ReplaceAllString(wrong, `"steps_per_epoch": 999`))
	fail(t, heed("train", "--resume="+filepath.Dir(config), "--max-epochs=9", "--data="+rowsFile(t, "classification")), 1, config+": training.steps_per_epoch must be ", "got 999")
	os.Remove(filepath.Join(dir, task.CheckpointFile))
	fail(t, heed("train", "--resume="+dir, "--max-epochs=9"), 1, "has no checkpoint.safetensors any more")
	delete(before, task.CheckpointFile)
	if !maps.Equal(folder(t, dir), before) {
		t.Error("what can't be raised has changed the folder")
	}
}

// One command begins a run, goes on with it and finds it finished.
func TestAutoResume(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	want, dir := ran(t, "--task=copy"), filepath.Join(base, "run")
	call := small("--task=copy", "--auto-resume", "--out="+dir)
	fail(t, heedContext(cancelled(t, 5), call...), 1, "interrupted")
	if out := succeed(t, append(call, "--max-steps=17")...); !strings.Contains(out, "the limit of 17 steps is reached") {
		t.Errorf("with a limit it prints %q", out)
	}
	succeed(t, call...)
	sameRun(t, dir, want)
	if out := succeed(t, call...); out != "The run in "+dir+" is finished\n" {
		t.Errorf("of a finished run it prints %q", out)
	}
	sameRun(t, dir, want)
	fail(t, heed(append(call, "--seed=2")...), 1, "holds a run with another configuration")
	longer := filepath.Join(base, "longer")
	succeed(t, small("--task=copy", "--max-epochs=5", "--out="+longer)...)
	succeed(t, append(call, "--max-epochs=5")...)
	sameRun(t, dir, longer)
}

// A signal ends what goes before training too: here a split of data whose end never comes.
func TestInterruptedSplit(t *testing.T) {
	begun, end := make(chan bool, 1), make(chan bool)
	defer close(end)
	rule := data.Rule{
		Name: "slow", Kind: data.KindTagging, Alphabet: "01", MaxLen: 12, Example: "0110",
		Sample: func(rng *rand.Rand, maxLen int) string {
			select {
			case begun <- true:
			default:
			}
			<-end
			return fmt.Sprintf("%0*b", maxLen, rng.IntN(1<<maxLen))
		},
		Answer: func(source string) (string, error) { return source, nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := newTask(ctx, task.Defaults(rule)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}
