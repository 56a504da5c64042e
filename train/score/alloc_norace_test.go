//go:build !race

package score

import (
	"strings"
	"testing"
)

// TestMemoryIsReused checks that Add allocates nothing for an answer that it has seen.
func TestMemoryIsReused(t *testing.T) {
	fields := strings.Fields(dog[0].answer)
	b := BLEU{Split: func(string) []string { return fields }}
	var s CHRF
	var e ErrorRate[string]
	references := dog[0].references
	units := [][]string{fields[:3], fields[1:]}
	add := func() {
		b.Add(dog[0].answer, references...)
		s.Add(dog[0].answer, references...)
		e.Add(fields, units...)
	}
	add()
	if got := testing.AllocsPerRun(100, add); got > 0 {
		t.Errorf("%v allocations per row, want none", got)
	}
}
