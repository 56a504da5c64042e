package main

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/train/task"
)

// A bit that flips in a file of a run is an error that names it, or changes nothing that is printed or written.
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
	for _, test := range []struct {
		file  string
		flips int
		call  []string
	}{
		{task.ConfigFile, flips, []string{"predict", dir, "abc", "gorgonia"}},
		{task.WeightsFile, flips, []string{"predict", dir, "abc", "gorgonia"}},
		{task.CheckpointFile, flips, []string{"train", "--resume=" + dir}},
		{task.HistoryFile, flips / 10, []string{"train", "--resume=" + dir}}, // each trains to the end
	} {
		file, path, seen := test.file, filepath.Join(dir, test.file), 0
		for range test.flips {
			b := []byte(good[file])
			i := rng.IntN(len(b))
			b[i] ^= 1 << rng.IntN(8)
			write(t, path, string(b))
			switch c := heed(test.call...); {
			case c.code != 0:
				fail(t, c, c.code, file) // 2 where an input is none of what is an alphabet now
				seen++
			case test.call[0] == "predict":
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
		if seen < flips*9/10 && file != task.HistoryFile { // which the checkpoint's takes the place of
			t.Errorf("of %d flips in %s, %d were seen", flips, file, seen)
		}
		write(t, path, good[file])
	}
}

// What is of another run isn't taken for this one's: the error names the two files that don't fit, and nothing changes.
func TestSwappedFiles(t *testing.T) {
	base := t.TempDir()
	flags := func(dir string, seed string) []string { return small("--task=copy", "--seed="+seed, "--out="+dir) }
	dir, other := filepath.Join(base, "run"), filepath.Join(base, "other")
	fail(t, heedContext(cancelled(t, 15), flags(dir, "1")...), 1, "interrupted")
	fail(t, heedContext(cancelled(t, 15), flags(other, "2")...), 1, "interrupted")
	good, bad := folder(t, dir), folder(t, other)
	for _, file := range []string{task.ConfigFile, task.WeightsFile, task.CheckpointFile} {
		write(t, filepath.Join(dir, file), bad[file])
		before := folder(t, dir)
		if file != task.CheckpointFile {
			fail(t, heed("eval", dir), 1, task.ConfigFile, task.WeightsFile, "changed or swapped")
			fail(t, heed("predict", dir, "abc"), 1, task.ConfigFile, task.WeightsFile, "changed or swapped")
		}
		if file != task.WeightsFile { // which the checkpoint's take the place of
			fail(t, heed("train", "--resume="+dir), 1, task.ConfigFile, task.CheckpointFile, "changed or swapped")
		}
		if !maps.Equal(folder(t, dir), before) {
			t.Errorf("with another %s, the folder has changed", file)
		}
		write(t, filepath.Join(dir, file), good[file])
	}

	// A summary says of which files it is.
	finished := filepath.Join(base, "finished")
	succeed(t, flags(finished, "1")...)
	good = folder(t, finished)
	for _, file := range []string{task.WeightsFile, task.HistoryFile, task.CheckpointFile} {
		for _, changed := range []string{bad[file], good[file][:len(good[file])-1]} {
			write(t, filepath.Join(finished, file), changed)
			before := folder(t, finished)
			fail(t, heed("train", "--resume="+finished), 1, task.SummaryFile+" and "+file, "don't belong together: one of them was changed or swapped")
			fail(t, heed("train", "--resume="+finished, "--epochs=5"), 1, task.SummaryFile+" and "+file)
			if !maps.Equal(folder(t, finished), before) {
				t.Errorf("with another %s, the folder has changed", file)
			}
		}
		write(t, filepath.Join(finished, file), good[file])
	}
	write(t, filepath.Join(finished, task.SummaryFile), "{")
	fail(t, heed("train", "--resume="+finished), 1, task.SummaryFile, "remove it, and --resume writes it anew")
	os.Remove(filepath.Join(finished, task.SummaryFile))
	succeed(t, "train", "--resume="+finished)

	// How long a run goes on may be changed.
	want := filepath.Join(base, "longer")
	succeed(t, append(flags(want, "1"), "--epochs=5", "--patience=4")...)
	write(t, filepath.Join(dir, task.ConfigFile), read(t, filepath.Join(want, task.ConfigFile)))
	succeed(t, "train", "--resume="+dir)
	sameRun(t, dir, want)
}
