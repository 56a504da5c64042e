// Package golden has functions for the examples' tests. They compare computed numbers with printed ones, search an
// example's output, and make wrong calls.
package golden

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
)

// Check fails the test if a number differs from the printed number by more than a tolerance: half a unit of the last
// printed decimal, plus moved, which is the possible effect of rounding in the printed inputs. Because numpy drops
// final zeros, the number with the most decimals sets the unit.
func Check(t *testing.T, name string, got []float64, printed string, moved float64) {
	t.Helper()
	want := must.Get(notebook.Numbers(printed))(t)
	if len(got) != len(want) {
		t.Errorf("%s: got %d numbers, want %d", name, len(got), len(want))
		return
	}
	half, powers := halfUnit(printed)
	worst := 0.0
	for i := range want {
		tolerance := half
		if powers { // half applies to the mantissa
			tolerance *= math.Pow(10, math.Floor(math.Log10(math.Abs(want[i]))))
		}
		off := math.Abs(got[i] - want[i])
		if got[i] == want[i] { // infinities
			off = 0
		}
		if worst = max(worst, off); !(off <= tolerance+moved) {
			t.Errorf("%s: number %d is %v, printed as %v: off by %.2g, want at most %.2g", name, i, got[i], want[i], off, tolerance+moved)
		}
	}
	t.Logf("%s: %d numbers, off by %.1e at most", name, len(want), worst)
}

// halfUnit returns half a unit of the last printed decimal, and reports whether the numbers have powers of ten.
func halfUnit(printed string) (half float64, powers bool) {
	decimals := 0
	for _, f := range strings.FieldsFunc(printed, func(r rune) bool { return strings.ContainsRune("[](), \n\t", r) }) {
		mantissa, _, power := strings.Cut(f, "e")
		powers = powers || power
		_, after, _ := strings.Cut(mantissa, ".")
		decimals = max(decimals, len(after))
	}
	return 0.5 * math.Pow(10, -float64(decimals)), powers
}

// Contains fails the test unless the output has all the texts in this order.
func Contains(t *testing.T, output string, texts ...string) {
	t.Helper()
	rest := output
	for _, text := range texts {
		i := strings.Index(rest, text)
		if i < 0 {
			t.Errorf("the output lacks this text after the texts before it:\n%s\noutput:\n%s", text, output)
			return
		}
		rest = rest[i+len(text):]
	}
}

// Table returns the numbers of the table below a heading, which must be a whole line of the output.
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

// Holds is like Check for the table below a heading of the output. It allows half a unit more, because the output is
// rounded, too.
func Holds(t *testing.T, output, heading, printed string, moved float64) {
	t.Helper()
	half, _ := halfUnit(printed)
	Check(t, heading, Table(t, output, heading), printed, moved+half)
}

// Calls is like Refuses. Also, with args, two calls with the same seed must print the same, and a call with another
// seed something else.
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
		t.Errorf("with %q the seed doesn't change the output:\n%s", args, outputs["7"])
	}
	Refuses(t, run, flags...)
}

// Refuses fails the test unless an example refuses wrong calls. An unknown flag, an argument without a flag, and an
// empty value for one of flags must each give a *CallError that lists the flags.
func Refuses(t *testing.T, run func(io.Writer, []string) error, flags ...string) {
	t.Helper()
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

// Picture fails the test unless an example that is called with --out alone draws the README's picture. One pixel in
// fifty may differ: another processor may round a weight to another shade.
func Picture(t *testing.T, run func(io.Writer, []string) error) {
	t.Helper()
	const committed = "picture.png"
	out := filepath.Join(t.TempDir(), committed)
	must.Do(t, run(io.Discard, []string{"--out", out}))
	if !alike(Decoded(t, out), Decoded(t, committed)) {
		t.Errorf("the picture differs from the one in the README; to update it, call this example with --out %s", committed)
	}
}

// Decoded returns the picture in a PNG file.
func Decoded(t *testing.T, path string) image.Image {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	img := must.Get(png.Decode(f))(t)
	return img
}

// alike reports whether two pictures have the same size and differ in at most one pixel in fifty.
func alike(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	different, size := 0, a.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			if color.RGBAModel.Convert(a.At(x, y)) != color.RGBAModel.Convert(b.At(x, y)) {
				different++
			}
		}
	}
	return 50*different <= size.X*size.Y
}
