//go:build !noasm

package kernel

// parallelPause takes some tens of nanoseconds and leaves the core to its other thread.
func parallelPause()
