//go:build !race

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/testseed"
)

// What heed train says that it takes is within 1.3 times of the most memory that it has had resident. With
// HEED_TEST_MEMORY in the environment, which .ci/memory sets, all cases are tried, otherwise four quick ones.
func TestMemoryEstimate(t *testing.T) {
	testseed.Slow(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("The quick brown fox jumps over the lazy dog; 0123456789!\n", 1<<13)), 0o666); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	rows := []byte("source,answer\n")
	for range 11_000 {
		for range 10 + r.IntN(390) {
			rows = append(rows, byte('a'+r.IntN(26)))
		}
		rows = append(rows, ",an answer\n"...)
	}
	pairs := filepath.Join(dir, "pairs.csv")
	if err := os.WriteFile(pairs, rows, 0o666); err != nil {
		t.Fatal(err)
	}
	nanogpt := "--task=text --data=" + text + " --max-len=64 --dim=128 --layers=4 "
	wide := "--task=text --data=" + text + " --max-len=64 --dim=512 --heads=8 --layers=6 --batch-size=8 --steps-per-epoch=3 --validation=50 "
	for _, test := range []struct {
		name, flags string
		quick       bool
	}{
		{"copy", "--task=copy --steps-per-epoch=200", true},
		{"reverse", "--task=reverse --steps-per-epoch=20", false},
		{"reverse, long", "--task=reverse --max-epochs=8", false},
		{"long rows in several buckets", "--task=seq2seq --batch-size=16 --dim=64 --layers=2 --workers=2 --max-steps=24 --seed=2 --data=" + pairs, true},
		{"brackets, on one worker", "--task=brackets --steps-per-epoch=20 --workers=1", true},
		{"dates", "--task=dates --steps-per-epoch=10 --validation=250", false},
		{"text", "--task=text --steps-per-epoch=10 --data=" + text, true},
		{"nanogpt", nanogpt + "--batch-size=12 --steps-per-epoch=10 --micro-batches=1", false},
		{"nanogpt, a large batch", nanogpt + "--batch-size=96 --steps-per-epoch=3 --micro-batches=1", false},
		{"nanogpt, a large batch in parts, one worker", nanogpt + "--batch-size=96 --steps-per-epoch=3 --micro-batches=4 --workers=1", false},
		{"nanogpt, a large batch in parts, two workers", nanogpt + "--batch-size=96 --steps-per-epoch=3 --micro-batches=4 --workers=2", false},
		{"nanogpt, long", nanogpt + "--batch-size=12 --steps-per-epoch=100 --max-epochs=5", false},
		{"width 512", wide + "--micro-batches=1", false},
		{"width 512, four workers", wide + "--micro-batches=4 --workers=4", false},
		{"width 512, Muon and an average", wide + "--micro-batches=1 --solver=muon --average=0.9", false},
		{"width 512, SGD", wide + "--micro-batches=1 --solver=sgd", false},
		{"a long context", "--task=text --data=" + text + " --max-len=2048 --batch-size=4 --steps-per-epoch=2 --validation=20", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !test.quick && os.Getenv("HEED_TEST_MEMORY") == "" {
				t.Skip("it takes seconds: .ci/memory tries it")
			}
			if testing.Short() && test.name != "copy" && test.name != "text" {
				t.Skip("others are tried")
			}
			flags := test.flags
			if !strings.Contains(flags, "--max-epochs") {
				flags += " --max-epochs=2"
			}
			estimate, peak := measure(t, append([]string{"train", "--patience=0", "--out=" + t.TempDir()}, strings.Fields(flags)...)...)
			ratio := estimate / peak
			t.Logf("said %.0f MB, took %.0f: %.2f", estimate, peak, ratio)
			if ratio > 1.3 || ratio < 1/1.3 {
				t.Errorf("it says that it takes %.0f MB, but took %.0f", estimate, peak)
			}
		})
	}
}

// A model that the process's limits don't allow is refused as one that the machine can't hold, and a small one learns
// within them. What the heap's tables and the threads' stacks take of them is left out: Go would end with a trace.
func TestMemoryLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, test := range []struct{ name, limit, flags, want string }{
		{"address space, a large model", "-v 4096000", "--dim=1024 --layers=12 --steps-per-epoch=2", "under the limit of address space (ulimit -v): choose"},
		{"address space, a small model", "-v 4096000", "--steps-per-epoch=2", ""},
		{"data, a large model", "-d 1000000", "--dim=1024 --layers=12 --steps-per-epoch=2", "under the limit of data (ulimit -d): choose"},
		{"data, a small model", "-d 400000", "--steps-per-epoch=2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := process()
			cmd.Path = "/bin/sh"
			cmd.Args = append([]string{"sh", "-c", "ulimit " + test.limit + ` && exec "$0" "$@"`, os.Args[0], "train", "--task=copy", "--max-epochs=1", "--out=" + t.TempDir()}, strings.Fields(test.flags)...)
			cmd.Env = append(cmd.Env, "GOMAXPROCS=2") // how many threads there are
			out, err := cmd.CombinedOutput()
			if (err != nil) != (test.want != "") || !strings.Contains(string(out), test.want) || strings.Contains(string(out), "goroutine") {
				t.Errorf("%v: %.1000s\nwant %q", err, out, test.want)
			}
		})
	}
}

var saidMemory = regexp.MustCompile(`(?m)^Memory: about ([\d.]+) (MB|GiB)$`)

// measure makes a call in a process of its own, and returns how much memory it says that it takes and the most that it
// has had resident, in MB.
func measure(t *testing.T, args ...string) (said, peak float64) {
	t.Helper()
	cmd := process(args...)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The status is read again and again, as what wait returns counts this process before it became that one.
	for tick := time.Tick(2 * time.Millisecond); ; {
		select {
		case err := <-ended:
			found := saidMemory.FindStringSubmatch(stdout.String())
			if err != nil || found == nil {
				t.Fatalf("%v; it printed %q", err, stdout.String())
			}
			said, _ = strconv.ParseFloat(found[1], 64)
			if found[2] == "GiB" {
				said *= 1 << 10
			}
			return said, peak
		case <-tick:
			peak = max(peak, highWater(cmd.Process.Pid))
		}
	}
}

// highWater returns the most memory that a process has had resident so far, in MB, or 0 where it has ended.
func highWater(pid int) float64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb float64
		if n, _ := fmt.Sscanf(s.Text(), "VmHWM: %f kB", &kb); n == 1 {
			return kb / (1 << 10)
		}
	}
	return 0
}
