//go:build unix

package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// peakRSS returns the largest resident memory of this process so far, in MB.
func peakRSS() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return float64(u.Maxrss) / (1 << 20) // in bytes on these systems
	}
	return float64(u.Maxrss) / (1 << 10)
}
