//go:build !race

package score

import (
	"strings"
	"testing"
)

// TestMemoryIsReused checks that ErrorRate.Add allocates nothing for an answer that it has seen.
func TestMemoryIsReused(t *testing.T) {
	fields := strings.Fields(dog[0].answer)
	var e ErrorRate[string]
	units := [][]string{fields[:3], fields[1:]}
	add := func() { e.Add(fields, units...) }
	add()
	if got := testing.AllocsPerRun(100, add); got > 0 {
		t.Errorf("%v allocations per row, want none", got)
	}
}
