// Package golden holds computed numbers to printed ones.
package golden

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/notebook"
)

// Check fails the test unless every number agrees with the printed one to half a unit of its last printed decimal, and
// what the rounding of the printed inputs can have moved it by. numpy drops the zeros at the end of a number, so that
// the last decimal of all is that of the number with the most.
func Check(t *testing.T, name string, got []float64, printed string, moved float64) {
	t.Helper()
	want, err := notebook.Numbers(printed)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d numbers, want %d", name, len(got), len(want))
		return
	}
	half, powers := halfUnit(printed)
	worst := 0.0
	for i := range want {
		tolerance := half
		if powers { // half is that of the mantissa
			tolerance *= math.Pow(10, math.Floor(math.Log10(math.Abs(want[i]))))
		}
		off := math.Abs(got[i] - want[i])
		if got[i] == want[i] { // infinities
			off = 0
		}
		if worst = max(worst, off); !(off <= tolerance+moved) {
			t.Errorf("%s: number %d is %v, printed as %v: %.2g off, of %.2g allowed", name, i, got[i], want[i], off, tolerance+moved)
		}
	}
	t.Logf("%s: %d numbers, %.1e off at most", name, len(want), worst)
}

// halfUnit is half a unit of the last decimal printed, and whether the numbers are printed with powers of ten.
func halfUnit(printed string) (half float64, powers bool) {
	most := 0
	for _, f := range strings.FieldsFunc(printed, func(r rune) bool { return strings.ContainsRune("[](), \n\t", r) }) {
		mantissa, _, power := strings.Cut(f, "e")
		powers = powers || power
		_, after, _ := strings.Cut(mantissa, ".")
		most = max(most, len(after))
	}
	return 0.5 * math.Pow(10, -float64(most)), powers
}
