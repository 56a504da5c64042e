package logit

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestReadMixture(t *testing.T) {
	for _, x := range []Mixture{{}, {Linear: 1}, {Linear: 0.45, Temperature: 1.5}} {
		if got := must.Get(ReadMixture(x.Metadata("run")))(t); got != x {
			t.Errorf("got %+v, want %+v", got, x)
		}
	}
	for _, bad := range []string{"", "0.001", "NaN", "1e9"} {
		must.Refuse(ReadMixture(map[string]string{temperatureKey: bad}))(t, "heed.temperature must be from 0.01 to 100")
	}
	must.Refuse(ReadMixture(map[string]string{linearKey: "1.5"}))(t, "heed.linear must be from 0 to 1")
}

// The odds equal the second of two Logits, if the first is 0.
func TestOdds(t *testing.T) {
	network, linear := []float32{0.5, -2}, []float32{3, 1}
	for _, x := range []Mixture{{}, {Linear: 1}, {Linear: 0.25, Temperature: 2}} {
		got, pairs := x.Odds(network, linear), x.Logits([]float32{0, 0.5, 0, -2}, []float32{0, 3, 0, 1}, 2)
		for i, z := range got {
			if want := pairs[2*i+1] - pairs[2*i]; math.Abs(float64(z-want)) > 1e-6 {
				t.Errorf("%+v: got the odds %v, want %v", x, z, want)
			}
		}
	}
	if got := (Mixture{Linear: 1}).Odds(nil, linear); !slices.Equal(got, linear) {
		t.Errorf("the linear model alone has %v, want %v", got, linear)
	}
}
