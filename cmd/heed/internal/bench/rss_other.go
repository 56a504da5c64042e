//go:build !unix

package bench

// peakRSS returns 0: this system doesn't report it.
func peakRSS() float64 { return 0 }
