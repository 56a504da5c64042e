package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
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
	text := must.Get(os.ReadFile("README.md"))(t)
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

// TestPrograms checks that each program runs with example.Main, and has a test that calls it with wrong flags.
func TestPrograms(t *testing.T) {
	for _, name := range names(t) {
		program := must.Get(os.ReadFile(filepath.Join(name, "main.go")))(t)
		if !strings.Contains(string(program), "\nfunc main() { example.Main(run) }\n") {
			t.Errorf("%s: want a main function that is example.Main(run)", name)
		}
		tests := must.Get(os.ReadFile(filepath.Join(name, "main_test.go")))(t)
		if !strings.Contains(string(tests), "golden.Calls(t, run, ") && !strings.Contains(string(tests), "golden.Refuses(t, run") {
			t.Errorf("%s: want a test that has golden.Calls or golden.Refuses", name)
		}
	}
}
