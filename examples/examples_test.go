package examples

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// names returns the names of the examples, which are the folders with a program.
func names(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("found %v, %v", mains, err)
	}
	for i, path := range mains {
		mains[i] = filepath.Dir(path)
	}
	return mains
}

// TestREADME checks that the README has exactly one row per example.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| \\[(\\w+)\\]\\((\\w+)/main\\.go\\) \\| .* \\| `go run \\./examples/(\\w+)` \\|$").FindAllStringSubmatch(string(text), -1) {
		if row[1] != row[2] || row[1] != row[3] {
			t.Errorf("the three names in a row differ: %q", row[1:])
		}
		rows = append(rows, row[1])
	}
	slices.Sort(rows)
	if want := names(t); !slices.Equal(rows, want) {
		t.Errorf("the README has rows for %q, want %q", rows, want)
	}
}

// drawn lists the examples that draw their picture quickly. TestCommandLine compares these pictures with the README's.
var drawn = []string{"causalmask", "crossattention", "earlystopping", "embed", "rowsoftmax", "sentence", "sharedprojection"}

// TestCommandLine checks that examples draw the README's pictures. A wrong call must end with status 2, the list of
// flags on standard error, and nothing on standard output; --help must end with status 0.
func TestCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every example")
	}
	bin := t.TempDir() // -s -w halves the time to link
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "./...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range drawn {
		out := filepath.Join(bin, name+".png")
		if text, err := exec.Command(filepath.Join(bin, name), "--out", out).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if got, want := pixels(t, out), pixels(t, filepath.Join(name, "picture.png")); !alike(got, want) {
			t.Errorf("%s's picture differs from the one in the README; to update it: go run ./examples/%[1]s --out examples/%[1]s/picture.png", name)
		}
	}
	for _, name := range names(t) {
		for _, c := range []struct {
			arg    string
			status int
			wrong  string
		}{
			{"--nosuch", 2, "flag provided but not defined: -nosuch\n"},
			{"more", 2, name + ` takes flags only, got the argument "more"`},
			{"--seed=x", 2, `invalid value "x" for flag -seed`},
			{"--help", 0, ""},
		} {
			cmd := exec.Command(filepath.Join(bin, name), c.arg)
			cmd.Dir = t.TempDir()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			used, other := &stderr, &stdout
			if c.status == 0 {
				used, other = &stdout, &stderr
			}
			if got := cmd.ProcessState.ExitCode(); got != c.status || other.Len() > 0 || !strings.HasPrefix(stderr.String(), c.wrong) ||
				!strings.Contains(used.String(), "Flags of "+name+":\n") || !strings.Contains(used.String(), "\n  -seed N\n") {
				t.Errorf("%s %s: status %d, want %d; standard output\n%s\nstandard error\n%s", name, c.arg, got, c.status, &stdout, &stderr)
			}
		}
	}
}

func pixels(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// alike reports whether two pictures have the same size and differ in at most one pixel in fifty. Some may differ:
// another processor may round a weight to another shade.
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
