//go:build !amd64 || noasm

package kernel

import "sync/atomic"

// assembly returns nothing: there is none for this processor.
func assembly() []*instructionSet { return nil }

var pauseCounter atomic.Int64

// parallelPause takes some tens of nanoseconds.
func parallelPause() {
	for range 8 {
		pauseCounter.Load()
	}
}
