package logit

import (
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
