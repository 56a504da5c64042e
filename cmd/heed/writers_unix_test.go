//go:build unix

package main

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/heed-go/heed/internal/folderlock"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// A second training in the same folder fails and changes nothing. A killed training doesn't lock the folder.
func TestOneWriter(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	flags := func(dir string) []string {
		return small("--task=copy", "--dropout=0.1", "--max-epochs=40", "--patience=0", "--out="+dir)
	}
	want, dir := filepath.Join(base, "whole"), filepath.Join(base, "run")
	succeed(t, flags(want)...)

	cmd := process(flags(dir)...)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Epoch 1:") {
	}
	var status syscall.WaitStatus
	must.Do(t, cmd.Process.Signal(syscall.SIGSTOP))
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the training has status %v, %v, want it stopped", status, err)
	}
	before := folder(t, dir)
	if _, ok := before[folderlock.Name]; !ok {
		t.Fatalf("the folder of the stopped training has %d files, want a lock among them", len(before))
	}
	fail(t, ended(process("train", "--resume="+dir)), 1, "another training is writing to "+dir+": wait for its end, or choose another folder")
	fail(t, heed(flags(dir)...), 1, "holds a run already")
	unchanged(t, dir, before)
	if got := succeed(t, "predict", dir, "abc"); got == "" {
		t.Error("heed predict prints nothing with a model that is being trained")
	}

	cmd.Process.Kill()
	cmd.Wait()
	succeed(t, "train", "--resume="+dir)
	sameRun(t, dir, want)
}

// If two trainings use one folder at the same time, one of them fails. The folder is the same as if the other had run
// alone.
func TestPairsOfWriters(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	pairs := 6
	if testing.Short() {
		pairs = 3
	}
	base := t.TempDir()
	flags := func(dir string, seed int) []string {
		return small("--task=copy", "--dropout=0.1", "--validation=50", fmt.Sprint("--seed=", seed), "--out="+dir)
	}
	var wants []string
	for seed := range 2 {
		wants = append(wants, filepath.Join(base, fmt.Sprint("whole", seed)))
		succeed(t, flags(wants[seed], seed)...)
	}
	for pair := range pairs {
		dir := filepath.Join(base, fmt.Sprint(pair))
		calls := [][]string{flags(dir, 0), flags(dir, 1)}
		switch pair % 3 {
		case 1: // the same call twice
			calls[1] = calls[0]
		case 2:
			fail(t, heedContext(cancelled(t, 15), calls[1]...), 1, "interrupted")
			calls[0], calls[1] = []string{"train", "--resume=" + dir}, []string{"train", "--resume=" + dir}
		}
		var winner, loser called
		var both sync.WaitGroup
		both.Go(func() { winner = ended(process(calls[0]...)) })
		both.Go(func() { loser = ended(process(calls[1]...)) })
		both.Wait()
		if loser.code == 0 {
			winner, loser = loser, winner
		}
		if winner.code != 0 {
			t.Fatalf("pair %d: both fail, with %q and %q", pair, winner.stderr, loser.stderr)
		}
		// The last two errors are from a loser that started after the winner ended.
		if fail(t, loser, 1); !strings.Contains(loser.stderr, "another training is writing") && !strings.Contains(loser.stderr, "holds a run") && !strings.Contains(loser.stderr, "finished") {
			t.Errorf("pair %d: the loser prints %q, want one of these errors", pair, loser.stderr)
		}
		s, _ := readRun(t, dir)
		sameRun(t, dir, wants[s.Seed])
		if files := folder(t, dir); len(files) != 7 {
			t.Errorf("pair %d: the folder has %d files, want the 7 of a finished run", pair, len(files))
		}
	}
}
