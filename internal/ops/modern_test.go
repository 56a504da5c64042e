package ops_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// rotary is an ops.Rotary with only the required fields.
var rotary = ops.Rotary{Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1}

// TestEqualModernNodesAreOne builds expressions twice in one graph, like TestEqualNodesAreOne.
func TestEqualModernNodesAreOne(t *testing.T) {
	for name, build := range map[string]func(g *graph, x, w *G.Node) (*G.Node, error){
		"rms norm": func(_ *graph, x, w *G.Node) (*G.Node, error) { return ops.RMSNorm(&ops.Env{}, x, w, 1e-5) },
		"silu":     func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Activate(&ops.Env{}, x, ops.SiLU) },
		"gate":     func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Gate(&ops.Env{}, x, x, ops.SiLU) },
		"rotary":   func(_ *graph, x, _ *G.Node) (*G.Node, error) { return ops.Rotate(&ops.Env{}, x, nil, rotary) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t)
			x, w := g.in(3, 4), g.in(4)
			a, b := g.node(build(g, x, w)), g.node(build(g, x, w))
			cost := G.Must(G.Add(g.node(gradcheck.Project(a, 1)), g.node(gradcheck.Project(b, 2))))
			if err := gradcheck.Expr(cost, x, w); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestModernAttributesTellNodesApart builds ops with different attributes on the same input, like
// TestAttributesTellNodesApart.
func TestModernAttributesTellNodesApart(t *testing.T) {
	g := newGraph(t)
	x, w, positions := g.in(4, 4), g.in(4), g.ints(1)
	nodes := map[*G.Node]string{}
	add := func(name string, n *G.Node, err error) {
		n = g.node(n, err)
		if other, ok := nodes[n]; ok {
			t.Errorf("%s and %s are the same node", name, other)
		}
		nodes[n] = name
	}
	for a := ops.ReLU; a.Known(); a++ {
		n, err := ops.Gate(&ops.Env{}, x, x, a)
		add("gate "+a.String(), n, err)
		n, err = ops.Activate(&ops.Env{}, x, a)
		add(a.String(), n, err)
	}
	for _, eps := range []float64{1e-5, 1e-6} {
		n, err := ops.RMSNorm(&ops.Env{}, x, w, eps)
		add(fmt.Sprint("norm ", eps), n, err)
	}
	for _, r := range []ops.Rotary{
		rotary,
		{Heads: 1, Frequencies: []float64{1}, Magnitude: 1},
		{Heads: 2, Frequencies: []float64{1}, Magnitude: 1},
		{Heads: 1, Frequencies: []float64{1, math.Nextafter(0.1, 1)}, Magnitude: 1},
		{Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: math.Nextafter(1, 2)},
		{Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1, Offset: 1},
		{Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1, Interleaved: true},
		{Heads: 1, Frequencies: []float64{1, 0.1}, Magnitude: 1, Inverse: true},
	} {
		n, err := ops.Rotate(&ops.Env{}, x, nil, r)
		add(fmt.Sprintf("%+v", r), n, err)
		if r.Offset == 0 { // positions replace the offset
			n, err = ops.Rotate(&ops.Env{}, x, positions, r)
			add(fmt.Sprintf("%+v with positions", r), n, err)
		}
	}
}

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

// TestModernErrors passes invalid arguments. Each error must name the op.
func TestModernErrors(t *testing.T) {
	g := newGraph(t)
	turn := func(r ops.Rotary, shape ...int) (*G.Node, error) {
		return ops.Rotate(&ops.Env{}, g.in(shape...), nil, r)
	}
	for name, tc := range map[string]struct {
		make func() (*G.Node, error)
		want string
	}{
		"rms norm dtypes":      {func() (*G.Node, error) { return ops.RMSNorm(&ops.Env{}, g.in(2, 3), g.in32(3), 1) }, "float64, got float32"},
		"rms norm widths":      {func() (*G.Node, error) { return ops.RMSNorm(&ops.Env{}, g.in(2, 3), g.in(2), 1) }, "(…, H·D) and gamma (D), got (2, 3) and (2)"},
		"gate shapes":          {func() (*G.Node, error) { return ops.Gate(&ops.Env{}, g.in(2, 3), g.in(3, 2), ops.SiLU) }, "(2, 3), got (3, 2)"},
		"gate dtypes":          {func() (*G.Node, error) { return ops.Gate(&ops.Env{}, g.in(2), g.in32(2), ops.SiLU) }, "float64, got float32"},
		"gate activation":      {func() (*G.Node, error) { return ops.Gate(&ops.Env{}, g.in(2), g.in(2), ops.Identity) }, "no activation -1"},
		"rotary rank":          {func() (*G.Node, error) { return turn(rotary, 4) }, "(B, H, T, K), got (4)"},
		"rotary heads":         {func() (*G.Node, error) { return turn(ops.Rotary{Frequencies: rotary.Frequencies}, 3, 4) }, "at least 1, got 0"},
		"rotary without pairs": {func() (*G.Node, error) { return turn(ops.Rotary{Heads: 1}, 3, 4) }, "from 2 to the vectors' width 4, got 0"},
		"rotary too wide":      {func() (*G.Node, error) { return turn(ops.Rotary{Heads: 2, Frequencies: rotary.Frequencies}, 3, 4) }, "to the vectors' width 2, got 4"},
		"rotary positions":     {func() (*G.Node, error) { return ops.Rotate(&ops.Env{}, g.in(3, 4), g.ints(3), rotary) }, "(1) or (1, 3), got int of shape (3)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.make()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), ": ") {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
