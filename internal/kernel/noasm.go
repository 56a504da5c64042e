//go:build (!amd64 && !arm64) || noasm

package kernel

import "sync/atomic"

// assembly returns nothing: this build has no assembly.
func assembly() []*instructionSet { return nil }

var pauseCounter atomic.Int64

// parallelPause waits for some tens of nanoseconds.
func parallelPause() {
	for range 8 {
		pauseCounter.Load()
	}
}
