package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMap checks that the package comment lists every file of the package.
func TestMap(t *testing.T) {
	comment, err := os.ReadFile("kernel.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.[gs]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if name != "kernel.go" && !strings.HasSuffix(name, "_test.go") && !strings.Contains(string(comment), name) {
			t.Errorf("the package comment in kernel.go doesn't list %s", name)
		}
	}
}
