//go:build linux && amd64

// Command amxrun runs a program and computes the instructions of AMX for it, so that tests of products with AMX run on
// processors that lack it:
//
//	go build -o amxrun ./internal/kernel/internal/amxrun
//	go test -exec "$PWD/amxrun" -run AMX ./internal/kernel
//
// Such an instruction stops the program with SIGILL. Then amxrun reads it, changes the program's memory or its own
// copy of the thread's tiles, and continues after it. Each takes microseconds. The program finds the environment
// variable HEED_AMX_EMULATED set. The exit status is the program's, 1 if it was killed, or 3 if tracing isn't allowed.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: amxrun program [argument...]")
		os.Exit(2)
	}
	runtime.LockOSThread() // only the thread that starts a program may trace it
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "amxrun:", err)
	}
	os.Exit(status)
}

func run(args []string) (status int, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HEED_AMX_EMULATED=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); errors.Is(err, unix.EPERM) {
		return 3, fmt.Errorf("tracing %s isn't allowed here: %w", args[0], err)
	} else if err != nil {
		return 1, err
	}
	threads := map[int]*thread{}
	for {
		var state unix.WaitStatus
		id, err := unix.Wait4(-1, &state, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 1, fmt.Errorf("waiting for %s: %w", args[0], err)
		case state.Exited() && id == cmd.Process.Pid:
			return state.ExitStatus(), nil
		case state.Signaled() && id == cmd.Process.Pid:
			return 1, fmt.Errorf("%s was killed by %v", args[0], state.Signal())
		case !state.Stopped():
			delete(threads, id)
			continue
		}
		signal := state.StopSignal()
		switch {
		case threads[id] == nil: // a new thread stops once
			threads[id] = &thread{id: id}
			if id == cmd.Process.Pid {
				if err := unix.PtraceSetOptions(id, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
					return 3, fmt.Errorf("tracing %s isn't allowed here: %w", args[0], err)
				}
			}
			signal = 0
		case signal == unix.SIGTRAP:
			signal = 0
		case signal == unix.SIGILL:
			if err := threads[id].emulate(); err != nil {
				fmt.Fprintln(os.Stderr, "amxrun:", err)
				break // the program receives the signal
			}
			signal = 0
		}
		if err := unix.PtraceCont(id, int(signal)); err != nil && err != unix.ESRCH {
			return 1, fmt.Errorf("continuing %s: %w", args[0], err)
		}
	}
}
