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

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// The memory estimate of heed train is within a factor of 1.3 of the peak resident memory. The variable
// HEED_TEST_MEMORY, which .ci/memory sets, runs all cases; otherwise only the quick ones run.
func TestMemoryEstimate(t *testing.T) {
	testseed.Proof(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text.txt")
	write(t, text, strings.Repeat("The quick brown fox jumps over the lazy dog; 0123456789!\n", 1<<13))
	r := rand.New(rand.NewPCG(1, 2))
	rows := []byte("source,answer\n")
	for range 11_000 {
		for range 10 + r.IntN(390) {
			rows = append(rows, byte('a'+r.IntN(26)))
		}
		rows = append(rows, ",an answer\n"...)
	}
	table := filepath.Join(dir, "rows.csv")
	write(t, table, string(rows))
	nanogpt := "--task=text --data=" + text + " --max-len=64 --dim=128 --layers=4 "
	wide := "--task=text --data=" + text + " --max-len=64 --dim=512 --heads=8 --layers=6 --batch-size=8 --steps-per-epoch=3 --validation=50 "
	for _, test := range []struct {
		name, flags string
		quick       bool
	}{
		{"copy", "--task=copy --steps-per-epoch=30", true},
		{"reverse", "--task=reverse --steps-per-epoch=20", false},
		{"reverse, long", "--task=reverse --max-epochs=8", false},
		{"long rows in several buckets", "--task=seq2seq --batch-size=16 --dim=32 --layers=1 --workers=2 --max-steps=12 --validation=100 --seed=2 --data=" + table, true},
		{"brackets, on one worker", "--task=brackets --steps-per-epoch=20 --workers=1", false},
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
				t.Skip("takes seconds: .ci/memory runs it")
			}
			if testing.Short() && test.name != "copy" && test.name != "text" {
				t.Skip("other cases run")
			}
			flags := test.flags
			if !strings.Contains(flags, "--max-epochs") {
				flags += " --max-epochs=2"
			}
			estimate, peak := measure(t, append([]string{"train", "--patience=0", "--out=" + t.TempDir()}, strings.Fields(flags)...)...)
			ratio := estimate / peak
			t.Logf("estimate %.0f MB, peak %.0f MB, ratio %.2f", estimate, peak, ratio)
			if ratio > 1.3 || estimate < (peak-4)/1.3 { // 4 MB: on a busy machine, garbage waits for its collection
				t.Errorf("the estimate is %.0f MB, the peak %.0f MB, want a ratio within 1.3", estimate, peak)
			}
		})
	}
}

// If rows need more memory than ulimit allows, every command that keeps rows reports an error while it reads them.
func TestRowsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a million rows")
	}
	t.Parallel()
	dir := t.TempDir()
	rows, few := filepath.Join(dir, "rows.tsv"), filepath.Join(dir, "few.tsv")
	write(t, rows, strings.Repeat("a\tx\nb\ty\n", 600_000))
	write(t, few, strings.Repeat("a\tx\nb\ty\n", 20))
	run := filepath.Join(dir, "run")
	learn := []string{"--task=classification", "--steps-per-epoch=0", "--validation=1", "--max-epochs=1"}
	succeed(t, small(append(learn, "--data="+few, "--out="+run)...)...)
	for _, args := range [][]string{
		small(append(learn, "--data="+rows, "--out="+filepath.Join(dir, "new"))...),
		{"eval", run, "--data", rows},
	} {
		cmd := process()
		cmd.Path = "/bin/sh"
		cmd.Args = append([]string{"sh", "-c", `ulimit -d 240000 && exec "$0" "$@"`, os.Args[0]}, args...)
		cmd.Env = append(cmd.Env, "GOMAXPROCS=2") // limits the number of threads
		out, err := cmd.CombinedOutput()
		if want := "under the limit of data (ulimit -d): use a smaller file"; err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "goroutine") {
			t.Errorf("heed %q ends with %v and prints %.1000s\nwant %q", args, err, out, want)
		}
	}
}

// A model that needs more memory than ulimit allows is an error, and a small model trains within the limit. The limits
// leave enough for the heap's tables and the threads' stacks; without that, Go would crash with a stack trace.
func TestMemoryLimits(t *testing.T) {
	testseed.Proof(t)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for _, test := range []struct{ name, limit, flags, want string }{
		{"address space, a large model", "-v 4096000", "--dim=1024 --layers=12 --steps-per-epoch=2", "under the limit of address space (ulimit -v): choose"},
		{"address space, a small model", "-v 4096000", "--steps-per-epoch=2", ""},
		{"data, a large model", "-d 1000000", "--dim=1024 --layers=12 --steps-per-epoch=2", "under the limit of data (ulimit -d): choose"},
		{"data, a small model", "-d 400000", "--steps-per-epoch=2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := process()
			cmd.Path = "/bin/sh"
			cmd.Args = append([]string{"sh", "-c", "ulimit " + test.limit + ` && exec "$0" "$@"`, os.Args[0], "train", "--task=copy", "--max-epochs=1", "--validation=50", "--out=" + t.TempDir()}, strings.Fields(test.flags)...)
			cmd.Env = append(cmd.Env, "GOMAXPROCS=2") // limits the number of threads
			out, err := cmd.CombinedOutput()
			if (err != nil) != (test.want != "") || !strings.Contains(string(out), test.want) || strings.Contains(string(out), "goroutine") {
				t.Errorf("heed train ends with %v and prints %.1000s\nwant %q", err, out, test.want)
			}
		})
	}
}

var memoryLine = regexp.MustCompile(`(?m)^Memory: about ([\d.]+) (MB|GiB)$`)

// measure makes a call in a process of its own. It returns the printed estimate and the peak resident memory, in MB.
func measure(t *testing.T, args ...string) (estimate, peak float64) {
	t.Helper()
	cmd := process(args...)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Poll the status, because the peak that Wait reports includes the memory of the test process before the exec.
	for tick := time.Tick(2 * time.Millisecond); ; {
		select {
		case err := <-ended:
			found := memoryLine.FindStringSubmatch(stdout.String())
			if err != nil || found == nil {
				t.Fatalf("heed train ends with %v and prints %q, want a line about memory", err, stdout.String())
			}
			estimate, _ = strconv.ParseFloat(found[1], 64)
			if found[2] == "GiB" {
				estimate *= 1 << 10
			}
			return estimate, peak
		case <-tick:
			peak = max(peak, highWater(cmd.Process.Pid))
		}
	}
}

// highWater returns the peak resident memory of a process so far, in MB, or 0 if the process has ended.
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
