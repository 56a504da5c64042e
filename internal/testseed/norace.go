//go:build !race

package testseed

// Race reports whether the race detector is on.
const Race = false
