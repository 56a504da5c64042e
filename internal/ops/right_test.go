package ops

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
)

// TestCountRightNever checks that a target equal to the argument never is wrong and makes its row wrong. Targets below
// 0 are not counted.
func TestCountRightNever(t *testing.T) {
	for _, test := range []struct {
		name                  string
		never                 int
		whole                 bool
		wantRight, wantCounts float64
	}{
		{"each", 1, false, 2, 3}, {"rows", 1, true, 1, 2}, {"each, without never", -1, false, 3, 3}, {"rows, without never", -1, true, 2, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := G.NewGraph()
			logits := G.NodeFromAny(g, tensor.New(tensor.WithShape(2, 2, 2), tensor.WithBacking([]float64{1, 0, 0, 1, 1, 0, 1, 0})), G.WithName("logits"))
			targets := G.NodeFromAny(g, tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]int{0, 1, 0, -1})), G.WithName("targets"))
			right, counted, err := CountRight(&Env{}, logits, targets, test.never, test.whole)
			must.Do(t, err)
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			must.Do(t, vm.RunAll())
			if r, n := right.Value().Data(), counted.Value().Data(); r != test.wantRight || n != test.wantCounts {
				t.Errorf("%v of %v targets are right, want %v of %v", r, n, test.wantRight, test.wantCounts)
			}
		})
	}
}
