package linear

import "testing"

func TestShape(t *testing.T) {
	for token, want := range map[string]string{"Paris": "Aaa", "NASA-2024": "AA-00", "été": "aa", "": ""} {
		if got := shapeOf(token); got != want {
			t.Errorf("the shape of %q is %q, want %q", token, got, want)
		}
	}
}
