package examples

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
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

// TestCommandLine checks the statuses and the output of programs: a wrong call must end with status 2, the list of
// flags on standard error, and nothing on standard output; --help must end with status 0. Examples that have tests call
// their function run with the same arguments, so only the others are built.
func TestCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	bin := t.TempDir()
	build := []string{"build", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)} // -s -w halves the time to link
	var built []string
	for _, name := range names(t) {
		program, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil || !strings.Contains(string(program), "\nfunc main() { example.Main(run) }\n") {
			t.Errorf("%s: want a main function that is example.Main(run) (error: %v)", name, err)
		}
		tests, err := os.ReadFile(filepath.Join(name, "main_test.go"))
		if !errors.Is(err, fs.ErrNotExist) {
			if !strings.Contains(string(tests), "golden.Calls(t, run, ") {
				t.Errorf("%s: want a test that has golden.Calls (error: %v)", name, err)
			}
			continue
		}
		built = append(built, name)
		build = append(build, "./"+name)
	}
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range built {
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
