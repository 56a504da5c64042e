//go:build unix

package main

import (
	"os"
	"syscall"
)

// notice lists the signals that schedulers send before they end a process.
var notice = []os.Signal{syscall.SIGUSR1}
