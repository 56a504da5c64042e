//go:build !unix

package main

import "os"

// notice are the signals by which schedulers say that a process has to end soon: there are none here.
var notice []os.Signal
