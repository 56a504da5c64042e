//go:build !unix

package main

import "os"

// notice lists the signals that schedulers send before they end a process. Here there are none.
var notice []os.Signal
