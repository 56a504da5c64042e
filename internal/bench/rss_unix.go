//go:build unix

package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// peakRSS returns the largest memory that this process has had resident, in MB.
func peakRSS() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return float64(u.Maxrss) / (1 << 20) // bytes there
	}
	return float64(u.Maxrss) / (1 << 10)
}
