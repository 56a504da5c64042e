package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/train/task"
)

// A bit that flips in the weights or in the checkpoint is an error that says so, or changes nothing that is printed or
// written.
func TestFlippedBits(t *testing.T) {
	flips := 300
	if testing.Short() {
		flips = 60
	}
	base := t.TempDir()
	dir, want := filepath.Join(base, "run"), filepath.Join(base, "whole")
	flags := func(dir string) []string { return small("--task=copy", "--out="+dir) }
	succeed(t, flags(want)...)
	fail(t, heedContext(cancelled(t, 15), flags(dir)...), 1, "interrupted")
	good := folder(t, dir)
	predicted := succeed(t, "predict", dir, "abc", "gorgonia")
	rng := rand.New(rand.NewPCG(1, 1))
	for _, file := range []string{task.WeightsFile, task.CheckpointFile} {
		path, seen := filepath.Join(dir, file), 0
		for range flips {
			b := []byte(good[file])
			i := rng.IntN(len(b))
			b[i] ^= 1 << rng.IntN(8)
			write(t, path, string(b))
			call := []string{"predict", dir, "abc", "gorgonia"}
			if file == task.CheckpointFile {
				call = []string{"train", "--resume=" + dir}
			}
			switch c := heed(call...); {
			case c.code != 0:
				fail(t, c, 1, file)
				seen++
			case file == task.WeightsFile:
				if c.stdout != predicted {
					t.Errorf("with byte %d of %s flipped it predicts %q, want %q", i, file, c.stdout, predicted)
				}
			default: // it has trained to the end
				sameRun(t, dir, want)
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o777)
				for name, content := range good {
					write(t, filepath.Join(dir, name), content)
				}
			}
		}
		if seen < flips*9/10 {
			t.Errorf("of %d flips in %s, %d were seen", flips, file, seen)
		}
		write(t, path, good[file])
	}
}
