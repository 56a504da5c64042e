// Package testseed has the seed and the number of cases for tests that draw random cases, skips slow tests with -short
// and slow proofs, and keeps the files of tests in memory. It defines the flags -seed and -cases of the test binary.
package testseed

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of random cases, a `number`; 0: a new seed for each test")
	times = flag.Int("cases", 1, "`factor` for the usual number of cases")
)

// Cases returns the number of cases for a test with usually n cases: n times -cases, or a quarter of it with -short.
func Cases(n int) int {
	if n *= *times; testing.Short() {
		n = (n + 3) / 4
	}
	return n
}

// Slow skips a slow test with -short, but not under the race detector, because it must check slow tests too.
func Slow(t *testing.T) {
	t.Helper()
	if testing.Short() && !Race {
		t.Skip("this test is slow: run it without -short")
	}
}

// Proof skips a test that tries every file, key, number or moment of something, which takes seconds. With the
// environment variable HEED_PROOFS it runs, as in .ci/run, and also under the race detector.
func Proof(t *testing.T) {
	t.Helper()
	Slow(t)
	if os.Getenv("HEED_PROOFS") == "" && !Race {
		t.Skip("this is a slow proof: run it with HEED_PROOFS=1")
	}
}

// Of returns the seed of a test's random cases, and logs a command that repeats the same cases.
func Of(t testing.TB) uint64 {
	t.Helper()
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay with: go test -run '^%s$' . -seed %d", t.Name(), s)
	return s
}
