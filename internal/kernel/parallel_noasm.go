//go:build !amd64 || noasm

package kernel

import "sync/atomic"

var parallelIdle atomic.Int64

// parallelPause takes some tens of nanoseconds.
func parallelPause() {
	for range 8 {
		parallelIdle.Load()
	}
}
