// Package testseed gives tests that draw random cases their seed and their number, and says which tests -short leaves
// out. Importing it defines the flags -seed and -cases of the test binary.
package testseed

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	seed  = flag.Uint64("seed", 1, "`number` that random cases follow from; 0 draws a new one for each test")
	times = flag.Int("cases", 1, "try so many `times` the usual number of cases")
)

// Cases returns how many cases a test tries that usually tries n: a quarter of them with -short, more with -cases.
func Cases(n int) int {
	if n *= *times; testing.Short() {
		n = (n + 3) / 4
	}
	return n
}

// Slow skips a slow test with -short, but not under the race detector, which is to see it.
func Slow(t *testing.T) {
	t.Helper()
	if testing.Short() && !Race {
		t.Skip("it is slow: run the tests without -short")
	}
}

// Of returns the seed of a test's random cases, and logs how to have the same cases again.
func Of(t testing.TB) uint64 {
	t.Helper()
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay with: go test -run '^%s$' . -seed %d", t.Name(), s)
	return s
}
