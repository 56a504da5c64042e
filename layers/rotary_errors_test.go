package layers_test

import (
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestRotaryErrors rotates invalid inputs. Each error names the expected and the actual value.
func TestRotaryErrors(t *testing.T) {
	c := newBench(t)
	err := func(_ *G.Node, err error) error { return err }
	rotated := func(r layers.Rotary, heads int, shape ...int) error {
		return err(r.Rotate(c.b, c.in("x", shape...), heads, nil))
	}
	rotate := func(positions *G.Node) error {
		return err(layers.Rotary{}.Rotate(c.b, c.in("x", 2, 3, 4), 1, positions))
	}
	elsewhere := input(G.NewGraph(), "at", dense([]int{1, 2}, 2))
	const rotary = "rotary positions"
	wantErrors(t, []errorCase{
		{"rotary of ints", err(layers.Rotary{}.Rotate(c.b, c.ints("i", make([]int, 4), 2, 2), 1, nil)), []string{rotary, "float32 or float64", "int"}},
		{"rotary rank", rotated(layers.Rotary{}, 1, 4), []string{rotary, "(T, H·K)", "(4)"}},
		{"rotary rank of 5", rotated(layers.Rotary{}, 1, 1, 1, 1, 1, 4), []string{rotary, "(B, H, T, K)", "(1, 1, 1, 1, 4)"}},
		{"rotary heads twice", rotated(layers.Rotary{}, 2, 2, 2, 3, 4), []string{rotary, "if the number of heads side by side is 1", "(2, 2, 3, 4)", "2 heads"}},
		{"rotary of no heads", rotated(layers.Rotary{}, 0, 3, 4), []string{rotary, "heads", "at least 1", "0"}},
		{"rotary heads don't divide", rotated(layers.Rotary{}, 3, 3, 4), []string{rotary, "(3, 4)", "3 heads"}},
		{"rotary odd head", rotated(layers.Rotary{}, 2, 3, 6), []string{rotary, "even width", "3"}},
		{"rotary odd Dim", rotated(layers.Rotary{Dim: 3}, 1, 3, 6), []string{rotary, "Dim", "even", "3"}},
		{"rotary Dim too wide", rotated(layers.Rotary{Dim: 6}, 2, 3, 8), []string{rotary, "Dim", "4", "6"}},
		{"rotary Dim below 0", rotated(layers.Rotary{Dim: -2}, 1, 3, 8), []string{rotary, "Dim", "-2"}},
		{"rotary Base below 0", rotated(layers.Rotary{Base: -1}, 1, 3, 8), []string{rotary, "Base", "from 1e-15", "-1"}},
		{"rotary Base NaN", rotated(layers.Rotary{Base: math.NaN()}, 1, 3, 8), []string{rotary, "Base", "NaN"}},
		{"rotary Base infinite", rotated(layers.Rotary{Base: inf}, 1, 3, 8), []string{rotary, "Base", "to 1e+15", "Inf"}},
		{"rotary positions of floats", rotate(c.in("f", 2)), []string{rotary, "int", "float64"}},
		{"rotary positions' batch", rotate(c.ints("a", make([]int, 3), 3)), []string{rotary, "(2) or (2, 3)", "(3)"}},
		{"rotary positions' length", rotate(c.ints("b", make([]int, 4), 2, 2)), []string{rotary, "(2) or (2, 3)", "(2, 2)"}},
		{"rotary positions' rank", rotate(c.ints("c", make([]int, 6), 2, 3, 1)), []string{rotary, "(2) or (2, 3)", "(2, 3, 1)"}},
		{"rotary positions of a scalar", rotate(G.NewScalar(c.g, tensor.Int, G.WithName("scalar"))), []string{rotary, "(2) or (2, 3)", "()"}},
		{"rotary positions of another graph", rotate(elsewhere), []string{rotary, "graph"}},
		{"rotary of nothing", err(layers.Rotary{}.Rotate(c.b, G.NewTensor(c.g, tensor.Float64, 2, G.WithShape(0, 4), G.WithName("e")), 1, nil)), []string{"rotary", "at least 1", "(0, 4)"}},
	})
}
