// Package golden is what the examples' tests share: it compares computed numbers with printed ones, looks into what an
// example prints, and calls it wrongly.
package golden

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/example"
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

// halfUnit returns half a unit of the last decimal printed, and reports whether the numbers are printed with powers
// of ten.
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

// Contains fails the test unless the output has every one of the texts, in this order.
func Contains(t *testing.T, output string, texts ...string) {
	t.Helper()
	rest := output
	for _, text := range texts {
		i := strings.Index(rest, text)
		if i < 0 {
			t.Errorf("the output lacks, or has in another order,\n%s\nin\n%s", text, output)
			return
		}
		rest = rest[i+len(text):]
	}
}

// Table returns the numbers of the table that the output has below a heading, a line of its own.
func Table(t *testing.T, output, heading string) []float64 {
	t.Helper()
	_, rest, found := strings.Cut("\n"+output, "\n"+heading+"\n")
	open := 0
	end := strings.IndexFunc(rest, func(r rune) bool {
		switch r {
		case '[':
			open++
		case ']':
			open--
		}
		return open == 0
	})
	values, err := notebook.Numbers(rest[:max(end, 0)])
	if !found || err != nil || len(values) == 0 {
		t.Fatalf("the output has no table below %q (%v):\n%s", heading, err, output)
	}
	return values
}

// Holds fails the test unless the output has, below a heading, the numbers that were printed. Both are rounded: the
// last digit may be another where the inputs' rounding can have moved it.
func Holds(t *testing.T, output, heading, printed string, moved float64) {
	t.Helper()
	half, _ := halfUnit(printed)
	Check(t, heading, Table(t, output, heading), printed, moved+half)
}

// Calls fails the test unless an example takes the flags that are named, in a call of its own args: the same call
// prints the same, with another seed it prints something else, and an unknown flag or an argument is an error that
// lists the flags.
func Calls(t *testing.T, run func(io.Writer, []string) error, args []string, flags ...string) {
	t.Helper()
	outputs := map[string]string{}
	for _, seed := range []string{"7", "7", "8"} {
		var b strings.Builder
		if err := run(&b, append([]string{"--seed", seed}, args...)); err != nil {
			t.Fatalf("--seed %s %q: %v", seed, args, err)
		}
		if before, ok := outputs[seed]; ok && before != b.String() {
			t.Errorf("two calls with --seed %s %q print\n%s\nand\n%s", seed, args, before, &b)
		}
		outputs[seed] = b.String()
	}
	if outputs["7"] == outputs["8"] {
		t.Errorf("with %q the seed changes nothing:\n%s", args, outputs["7"])
	}
	wrong := [][]string{{"--nosuch"}, {"more"}, {"--seed", "x"}}
	for _, name := range flags {
		wrong = append(wrong, []string{name, ""})
	}
	for _, args := range wrong {
		var call *example.CallError
		if err := run(io.Discard, args); !errors.As(err, &call) {
			t.Errorf("%q: got %v, want a *CallError", args, err)
			continue
		}
		for _, name := range append(flags, "-seed") {
			if !strings.Contains(call.Error(), fmt.Sprintf("\n  %s ", name)) {
				t.Errorf("%q: the message doesn't list %s:\n%v", args, name, call)
			}
		}
	}
}
