package score

import (
	"math"
	"testing"
)

// The values are those of transformers.data.metrics.squad_metrics, with the greatest of all references.
func TestExtracts(t *testing.T) {
	var all Extracts
	exact, sum := 0, 0.0
	tests := []struct {
		answer     string
		references []string
		exact      bool
		f1         float64
	}{
		{"Berlin", []string{"Berlin"}, true, 1},
		{"the Berlin!", []string{"berlin"}, true, 1},
		{"in Berlin, today", []string{"Berlin", "in the Berlin"}, false, 0.8},
		{"", nil, true, 1},
		{"x", nil, false, 0},
		{"", []string{"the"}, true, 1},
		{"", []string{"the", "Berlin"}, false, 0},
		{"a man, a plan", []string{"man plan canal"}, false, 0.8},
		{"theé an_other", []string{"theé another"}, true, 1},
		{"12,5 %", []string{"125%"}, true, 1},
		{"A—the house", []string{"house"}, false, 2. / 3},
		{"red red blue", []string{"red blue blue green"}, false, 4. / 7},
		{"", []string{"Berlin"}, false, 0},
	}
	for _, test := range tests {
		isExact, f1 := all.Add(test.answer, test.references...)
		if isExact != test.exact || math.Abs(f1-test.f1) > 1e-12 {
			t.Errorf("%q for %q: got %t, %g, want %t, %g", test.answer, test.references, isExact, f1, test.exact, test.f1)
		}
		if sum += test.f1; test.exact {
			exact++
		}
	}
	n := float64(len(tests))
	if all.ExactMatch() != float64(exact)/n || math.Abs(all.F1()-sum/n) > 1e-12 {
		t.Errorf("got %g and %g, want %g and %g", all.ExactMatch(), all.F1(), float64(exact)/n, sum/n)
	}
	if x := (&Extracts{}).F1(); x == x {
		t.Errorf("F1 of no texts: got %g, want NaN", x)
	}
}
