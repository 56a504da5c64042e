//go:build unix

package main

import (
	"os"
	"syscall"
)

// notice are the signals by which schedulers say that a process has to end soon.
var notice = []os.Signal{syscall.SIGUSR1}
