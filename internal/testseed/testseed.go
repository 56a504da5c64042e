// Package testseed has the seed and the number of cases for tests that draw random cases, leaves out part of the cases
// of large tables, skips slow tests with -short and slow proofs, and keeps the files of tests in memory. It defines the
// flags -seed and -cases of the test binary.
package testseed

import (
	"flag"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"testing"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of random cases, a `number`; 0: a new seed for each test")
	times = flag.Int("cases", 1, "`factor` for the usual number of cases")
)

// proofs reports whether slow proofs run.
func proofs() bool { return os.Getenv("HEED_PROOFS") != "" }

// share returns k if a test tries one of k cases: all with HEED_PROOFS, half of them usually, and a sixth with -short.
// The race detector must see what runs at the same time, so -short changes nothing there.
func share() int {
	switch {
	case testing.Short() && !Race:
		return 6
	case proofs():
		return 1
	}
	return 2
}

// Cases returns the number of random cases for a test with n of them: n times -cases with HEED_PROOFS, half as many
// without it, and a sixth with -short, but at least one.
func Cases(n int) int {
	return max(1, n**times/share())
}

// LeftOut reports whether a test leaves out the case with the given name. It is for cases that combine many settings,
// each of which is in many other cases too. It leaves out none with HEED_PROOFS, half of them without it, and five of
// six with -short.
func LeftOut(name string) bool {
	return crc32.ChecksumIEEE([]byte(name))%uint32(share()) != 0
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
	if !proofs() && !Race {
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
