package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestMap checks that the package comment lists every file of the package.
func TestMap(t *testing.T) {
	comment := must.Get(os.ReadFile("kernel.go"))(t)
	for _, name := range must.Get(filepath.Glob("*.[gs]*"))(t) {
		if name != "kernel.go" && !strings.HasSuffix(name, "_test.go") && !strings.Contains(string(comment), name) {
			t.Errorf("the package comment in kernel.go doesn't list %s", name)
		}
	}
}
