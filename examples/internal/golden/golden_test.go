package golden

import "testing"

func TestHalfUnit(t *testing.T) {
	for _, c := range []struct {
		printed string
		half    float64
		powers  bool
	}{
		{"[[1.   0.25]]", 0.005, false},
		{"[  0. -inf]", 0.5, false},
		{"2.70287240e-03", 0.5e-8, true},
	} {
		half, powers := halfUnit(c.printed)
		if half < 0.999*c.half || half > 1.001*c.half || powers != c.powers {
			t.Errorf("%s: got %v, %v, want %v, %v", c.printed, half, powers, c.half, c.powers)
		}
	}
}
