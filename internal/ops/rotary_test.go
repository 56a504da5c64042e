package ops_test

import (
	"math"
	"testing"

	"github.com/heed-go/heed/internal/ops"
)

// rotary is an ops.Rotary with only the required fields.
var rotary = ops.Rotary{Name: "rotary", Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1}

// TestRotateBack checks that Inverse undoes a rotation.
func TestRotateBack(t *testing.T) {
	g := newGraph(t)
	x := g.in(2, 3, 4)
	r := ops.Rotary{Heads: 2, Frequencies: []float64{1}, Magnitude: 1, Offset: 5}
	y := g.node(ops.Rotate(&ops.Env{}, x, nil, r))
	r.Inverse = true
	want := x.Value().Data().([]float64)
	for i, v := range g.read(g.node(ops.Rotate(&ops.Env{}, y, nil, r)))[0] {
		if math.Abs(v-want[i]) > 1e-15 {
			t.Errorf("element %d is %v, want %v", i, v, want[i])
		}
	}
}
