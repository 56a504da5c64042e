//go:build !race

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What heed train says that it takes is within 1.3 times of the most memory that it has had resident.
func TestMemoryEstimate(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("The quick brown fox jumps over the lazy dog; 0123456789!\n", 1<<13)), 0o666); err != nil {
		t.Fatal(err)
	}
	nanogpt := "--task=text --data=" + text + " --max-len=64 --dim=128 --layers=4 "
	wide := "--task=text --data=" + text + " --max-len=64 --dim=512 --heads=8 --layers=6 --batch=8 --steps=3 --validation=50 "
	for _, test := range []struct {
		name, flags string
		large       bool
	}{
		{"copy", "--task=copy --steps=20", false},
		{"reverse", "--task=reverse --steps=20", false},
		{"reverse, long", "--task=reverse --epochs=8", true},
		{"brackets, on one worker", "--task=brackets --steps=20 --workers=1", false},
		{"dates", "--task=dates --steps=10 --validation=250", false},
		{"text", "--task=text --steps=10 --data=" + text, false},
		{"nanogpt", nanogpt + "--batch=12 --steps=10 --micro-batches=1", false},
		{"nanogpt, a large batch", nanogpt + "--batch=96 --steps=3 --micro-batches=1", true},
		{"nanogpt, a large batch in parts, one worker", nanogpt + "--batch=96 --steps=3 --micro-batches=4 --workers=1", true},
		{"nanogpt, a large batch in parts, two workers", nanogpt + "--batch=96 --steps=3 --micro-batches=4 --workers=2", true},
		{"nanogpt, long", nanogpt + "--batch=12 --steps=100 --epochs=5", true},
		{"width 512", wide + "--micro-batches=1", true},
		{"width 512, four workers", wide + "--micro-batches=4 --workers=4", true},
		{"width 512, Muon and an average", wide + "--micro-batches=1 --solver=muon --average=0.9", true},
		{"width 512, SGD", wide + "--micro-batches=1 --solver=sgd", true},
		{"a long context", "--task=text --data=" + text + " --max-len=2048 --batch=4 --steps=2 --validation=20", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.large && testing.Short() {
				t.Skip("it takes seconds")
			}
			flags := test.flags
			if !strings.Contains(flags, "--epochs") {
				flags += " --epochs=2"
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
