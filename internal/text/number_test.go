package text

import "testing"

func TestNumber(t *testing.T) {
	for s, want := range map[string]float64{"1": 1, " -12.5 ": -12.5, "+3e6": 3e6, ".5": 0.5, "1e-400": 0, "-1e100": -1e100, "007": 7} {
		if got, err := Number(s); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", " ", "NaN", "inf", "-Infinity", "0x10", "1_000", "1,5", "1e101", "-2e308", "1e999", "12 kg", "1 2", "--1", "e", "٣"} {
		if got, err := Number(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, got)
		}
	}
}
