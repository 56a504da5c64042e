//go:build mpi && cgo && linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
)

// job returns a call in a number of processes that mpirun starts. There may be more processes than processors, and the
// user may be root.
func job(processes int, args ...string) *exec.Cmd {
	cmd := process(args...)
	cmd.Args = append([]string{"mpirun", "--oversubscribe", "-n", strconv.Itoa(processes), cmd.Path}, args...)
	cmd.Path, cmd.Err = exec.LookPath("mpirun")
	cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return cmd
}

// The number of processes changes no byte of a run, even with dropout.
func TestJobChangesNoByte(t *testing.T) {
	text := newFile(t, "numbers.txt", lines(500, func(i int) string { return fmt.Sprintf("and %d is a number", i) }))
	for _, name := range []string{"reverse", "dates", "text", "seq2seq", "tagging"} {
		t.Run(name, func(t *testing.T) {
			rows := dataFlags(t, name)
			flags := func(dir string) []string {
				flags := small("--task="+name, "--dropout=0.1", "--micro-batches=4", "--out="+dir)
				if name == "text" {
					return append(flags, "--data="+text, "--max-len=32")
				}
				return append(flags, rows...)
			}
			want := filepath.Join(t.TempDir(), "alone")
			printed := succeed(t, flags(want)...)
			for _, n := range []int{1, 2, 4} {
				dir := filepath.Join(t.TempDir(), "run")
				out, err := job(n, flags(dir)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%d processes: %v\n%s", n, err, out)
				}
				sameRun(t, dir, want)
				if strings.Count(string(out), "\n") != strings.Count(printed, "\n") || strings.Contains(string(out), "best so far") {
					t.Errorf("%d processes print %q, want as many lines as %q, and no mark", n, out, printed)
				}
			}
		})
	}
}

// A job ends soon if one of its processes or the launcher is killed, or if the disk is full. The first process prints
// one line if it can. Another number of processes can resume the run.
func TestJobKilled(t *testing.T) {
	base := t.TempDir()
	flags := func(dir string) []string {
		return []string{"train", "--task=copy", "--dim=32", "--batch-size=8", "--steps-per-epoch=40", "--max-epochs=40", "--validation=50", "--patience=0", "--micro-batches=4", "--dropout=0.1", "--out=" + dir}
	}
	want := filepath.Join(base, "whole")
	succeed(t, flags(want)...)
	for i, c := range []struct {
		victim, line string
	}{
		// Without a launcher nobody reads the line; without the first process nobody writes it.
		{"launcher", ""}, {"first", ""},
		{"last", "heed: interrupted, or another process of the job has ended: heed train --resume "},
		{"last, by SIGTERM", "heed: process 3 of the Group: interrupted: heed train --resume "},
		{"last, by SIGUSR1", "heed: process 3 of the Group: ended by SIGUSR1: heed train --resume "},
		{"interrupted", "heed: interrupted"}, // or the line above, if the process takes longer than mpirun waits
		{"disk", ".safetensors: file too large"},
	} {
		t.Run(c.victim, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			cmd := job(4, flags(dir)...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			must.Do(t, cmd.Start())
			pid := cmd.Process.Pid
			for { // until the run has begun
				if _, err := os.Stat(filepath.Join(dir, "checkpoint.safetensors")); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			children := children(t, pid)
			if len(children) != 4 {
				t.Fatalf("mpirun has the processes %v, want 4", children)
			}
			time.Sleep(time.Duration(i) * 3 * time.Millisecond)
			switch c.victim {
			case "launcher":
				syscall.Kill(pid, syscall.SIGKILL)
			case "first":
				syscall.Kill(children[0], syscall.SIGKILL)
			case "last":
				syscall.Kill(children[3], syscall.SIGKILL)
			case "last, by SIGTERM":
				syscall.Kill(children[3], syscall.SIGTERM)
			case "last, by SIGUSR1":
				syscall.Kill(children[3], syscall.SIGUSR1)
			case "interrupted":
				syscall.Kill(pid, syscall.SIGINT)
			case "disk": // a limit on the size of files acts like a full disk
				must.Do(t, unix.Prlimit(children[0], unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 2000, Max: 2000}, nil))
			}
			killed := time.Now()
			if err := cmd.Wait(); err == nil {
				t.Fatal("the job ended before the kill: give it more steps")
			}
			if code := cmd.ProcessState.ExitCode(); (code == 3) != (c.victim == "last, by SIGUSR1") {
				t.Errorf("the job has status %d, want 3 only after SIGUSR1", code)
			}
			for _, child := range children {
				for running(child) {
					if time.Since(killed) > 10*time.Second {
						t.Fatalf("process %d still runs after 10 s", child)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			lines := strings.Count(out.String(), "heed: ")
			if c.line == "" && lines > 0 || c.line != "" && (lines != 1 || !strings.Contains(out.String(), c.line)) {
				t.Errorf("the job prints %q, want one line with %q, or none if that is empty", out.String(), c.line)
			}
			if i%2 == 0 {
				succeed(t, "train", "--resume="+dir)
			} else if out, err := job(2, "train", "--resume="+dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			sameRun(t, dir, want)
		})
	}
}

// children returns a process's children.
func children(t *testing.T, pid int) (children []int) {
	t.Helper()
	for _, f := range strings.Fields(read(t, fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))) {
		child := must.Get(strconv.Atoi(f))(t)
		children = append(children, child)
	}
	return children
}

// running reports whether a process or one of its threads still runs. Until all have ended, the process holds its
// locks.
func running(pid int) bool {
	if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); err == nil && len(threads) > 1 {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}

// If a signal ends a process other than the first while the processes read the data, the first process prints which one
// ended.
func TestJobInterruptedOutsideTraining(t *testing.T) {
	pairs := newFile(t, "pairs.tsv", lines(400_000, func(i int) string { return fmt.Sprintf("%d\t%d", i*7919%10_000_019, i) }))
	var out bytes.Buffer
	cmd := job(2, "train", "--task=seq2seq", "--data="+pairs, "--columns=1,2", "--out="+filepath.Join(t.TempDir(), "run"))
	cmd.Stdout, cmd.Stderr = &out, &out
	must.Do(t, cmd.Start())
	var processes []int
	for ; len(processes) < 2 || !reads(processes[1], pairs); time.Sleep(time.Millisecond) {
		processes = children(t, cmd.Process.Pid)
	}
	syscall.Kill(processes[1], syscall.SIGTERM)
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "heed: process 1 of the Group: interrupted\n") {
		t.Errorf("the job ends with %v and prints %q, want a line that process 1 was interrupted", err, out.String())
	}
}

// reads reports whether a process has a file open.
func reads(pid int, path string) bool {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, f.Name()))
		return target == path
	})
}

// A job prints one line about a wrong call, not one per process.
func TestJobErrors(t *testing.T) {
	base := t.TempDir()
	dir, fresh := filepath.Join(base, "run"), filepath.Join(base, "fresh")
	succeed(t, small("--task=copy", "--max-epochs=1", "--out="+dir)...)
	for _, c := range []struct {
		name      string
		processes int
		args      []string
		want      string
	}{
		{"a wrong flag", 2, []string{"train", "--dim=-1"}, "--dim must be"},
		{"no task", 2, []string{"train", "--task=nothing"}, "--task must be"},
		{"no divisor", 3, small("--out=" + fresh), "--micro-batches must be 1, 2, 4, 8, … times the number of processes, got 4 for 3 processes"},
		{"no divisor, with --resume", 3, []string{"train", "--resume=" + dir}, "got 4 for 3 processes"},
		{"no divisor, with --find-rate", 3, small("--find-rate=" + fresh + ".png"), "got 4 for 3 processes"},
		{"a folder with a run", 2, small("--out=" + dir), "holds a run already"},
		{"a run that is finished", 2, []string{"train", "--resume=" + dir}, "is finished"},
		{"no folder", 2, []string{"train", "--resume=" + filepath.Join(dir, "nothing")}, "isn't a run folder"},
		{"no text", 2, small("--task=text", "--data="+filepath.Join(dir, "nothing")), "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := job(c.processes, c.args...).CombinedOutput()
			if err == nil || strings.Count(string(out), "heed: ") != 1 || !strings.Contains(string(out), c.want) {
				t.Errorf("the job ends with %v and prints %q, want one line with %q", err, out, c.want)
			}
		})
	}
	if files, err := os.ReadDir(base); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v, want only the run", files, err)
	}
}

// It is an error if processes would train differently. In each case, the second process differs from the first.
func TestJobUnlike(t *testing.T) {
	other := filepath.Join(t.TempDir(), "heed")
	program := must.Get(os.ReadFile(os.Args[0]))(t)
	must.Do(t, os.WriteFile(other, append(program, 0), 0o777))
	args := small("--out=" + filepath.Join(t.TempDir(), "run"))
	for _, c := range []struct {
		name   string
		second []string
		want   string
		needs  string // instruction set that the test needs, if any
	}{
		{"builds", append([]string{other}, args...), "process 1 runs a different build from process 0", ""},
		{"settings", append(append([]string{os.Args[0]}, args...), "--seed=2"), "differ from those of process 0", ""},
		{"calls", []string{os.Args[0], "train", "--resume=nothing"}, "differ from those of process 0", ""},
		{"kernels", append([]string{"-x", "GODEBUG=cpu.avx512f=off", os.Args[0]}, args...), "process 1 computes with avx2 and process 0 with avx512", "avx512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != "" && kernel.Instructions() != c.needs {
				t.Skipf("this processor has no %s", c.needs)
			}
			cmd := job(1, args...)
			cmd.Args = append(append(cmd.Args, ":", "-n", "1"), c.second...)
			out, err := cmd.CombinedOutput()
			if err == nil || strings.Count(string(out), "heed: ") != 1 || !strings.Contains(string(out), c.want) {
				t.Errorf("the job ends with %v and prints %q, want one line with %q", err, out, c.want)
			}
		})
	}
}

// Only the first process needs the run's folder, even if the run is resumed.
func TestJobFolderOfFirst(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, args := range [][]string{small("--out=a/run", "--max-steps=5"), {"train", "--resume=a/run"}} {
		cmd := job(1, args...)
		cmd.Args = slices.Insert(cmd.Args, 2, "--wdir", first)
		cmd.Args = append(append(cmd.Args, ":", "-n", "1", "--wdir", second, os.Args[0]), args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	read(t, filepath.Join(first, "a", "run", "summary.json"))
	if files, err := os.ReadDir(second); err != nil || len(files) > 0 {
		t.Errorf("the second process has written %v, %v, want nothing", files, err)
	}
}

// Each of four processes has a quarter of the solver's memory, measured as the difference between AdamW and SGD. For a
// checkpoint, the first process gathers the parts of all processes. The memory estimate that it prints includes them.
func TestJobMemory(t *testing.T) {
	text := newFile(t, "text.txt", strings.Repeat("and so on and so forth\n", 500))
	peaks := func(solver string, processes int) (values []float64) {
		cmd := job(processes, "train", "--task=text", "--data="+text, "--dim=512", "--heads=8", "--layers=6", "--max-len=16", "--micro-batches=4", "--batch-size=4",
			"--workers=1", "--steps-per-epoch=3", "--max-epochs=1", "--validation=4", "--patience=0", "--solver="+solver, "--out="+filepath.Join(t.TempDir(), "run"))
		var stdout strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
		must.Do(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		highest := map[int]float64{}
		var pids []int
		for tick := time.Tick(2 * time.Millisecond); ; {
			select {
			case err := <-ended:
				found := memoryLine.FindStringSubmatch(stdout.String())
				if err != nil || found == nil || len(pids) != processes {
					t.Fatalf("the job of the processes %v ends with %v and prints %q", pids, err, stdout.String())
				}
				for _, pid := range pids {
					values = append(values, highest[pid])
				}
				estimate, _ := strconv.ParseFloat(found[1], 64)
				t.Logf("%s in %d processes: estimate %.0f MB, peaks %.0f MB", solver, processes, estimate, values)
				if ratio := estimate / values[0]; ratio > 1.3 || ratio < 0.97 {
					t.Errorf("%s in %d processes: the estimate is %.0f MB, the peak %.0f MB, want a ratio from 0.97 to 1.3", solver, processes, estimate, values[0])
				}
				return values
			case <-tick:
				if len(pids) < processes {
					pids = children(t, cmd.Process.Pid)
				}
				for _, pid := range pids {
					highest[pid] = max(highest[pid], highWater(pid))
				}
			}
		}
	}
	one, four := peaks("adamw", 1)[0]-peaks("sgd", 1)[0], peaks("adamw", 4)[3]-peaks("sgd", 4)[3]
	if ratio := four / one; ratio < 0.2 || ratio > 0.3 {
		t.Errorf("AdamW's memory is %.0f MB in one process and %.0f MB in the last of four, want a quarter", one, four)
	}
}

// Two processes print their measurement once.
func TestJobBench(t *testing.T) {
	cmd := job(2, "bench", "dist", "--steps=2", "--json")
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.Output())(t)
	var s bench.Scaling
	must.Do(t, json.NewDecoder(bytes.NewReader(out)).Decode(&s))
	if s.Processes != 2 || !(s.AgreeMS > 0 && s.SwapMS > 0 && s.ModelMS > 0 && s.Share > 0 && s.Share < 1) {
		t.Errorf("the measurement is %+v, want 2 processes and positive times", s)
	}
	if n := bytes.Count(out, []byte(`"workers":1,`)); n != 1 {
		t.Errorf("the measurement is printed %d times, want once: %s", n, out)
	}
}
