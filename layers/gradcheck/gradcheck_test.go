package gradcheck_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/gradcheck"
)

type build = func(g *G.ExprGraph, nodes G.Nodes) (*G.Node, error)

func TestRightGradients(t *testing.T) {
	transposed := wave(3, 4)
	must.Do(t, transposed.T())
	column := must.Get(wave(4, 3).Slice(nil, tensor.S(1)))(t)
	scalar := tensor.New(tensor.FromScalar(0.7))
	ids := tensor.New(tensor.WithShape(3), tensor.WithBacking([]int{4, 0, 4}))

	for _, tc := range []struct {
		name   string
		inputs []gradcheck.Input
		build  build
	}{
		{"scalar", []gradcheck.Input{{Value: scalar}}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return G.Square(nodes[0])
		}},
		{"the input itself", []gradcheck.Input{{Value: scalar}}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return nodes[0], nil
		}},
		{"vector", []gradcheck.Input{{Name: "x", Value: wave(5)}}, sumOf(cube())},
		{"layer", []gradcheck.Input{{Name: "x", Value: wave(4, 3)}, {Name: "w", Value: wave(3, 2)}},
			func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
				return G.Sum(G.Must(G.Tanh(G.Must(G.Mul(nodes[0], nodes[1])))))
			}},
		{"two uses", []gradcheck.Input{{Name: "x", Value: wave(5)}}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return G.Sum(G.Must(G.HadamardProd(nodes[0], G.Must(G.Exp(nodes[0])))))
		}},
		{"three axes", []gradcheck.Input{{Name: "a", Value: wave(2, 3, 4)}, {Name: "b", Value: wave(2, 4, 3)}},
			func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
				return gradcheck.Project(G.Must(G.BatchedMatMul(nodes[0], nodes[1])), 1)
			}},
		{"four axes", []gradcheck.Input{{Name: "a", Value: wave(2, 3, 2, 2)}}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return gradcheck.Project(G.Must(G.Transpose(G.Must(G.Square(nodes[0])), 0, 2, 1, 3)), 1)
		}},
		{"fixed ids", []gradcheck.Input{{Name: "table", Value: wave(5, 2)}, {Name: "ids", Value: ids, Fixed: true}},
			func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
				return gradcheck.Project(G.Must(G.ByIndices(nodes[0], nodes[1], 0)), 1)
			}},
		{"unused input", []gradcheck.Input{{Name: "x", Value: wave(3)}, {Name: "unused", Value: wave(2, 2)}},
			func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Sum(G.Must(G.Square(nodes[0]))) }},
		{"no input used", []gradcheck.Input{{Name: "x", Value: wave(3)}, {Name: "other", Value: tensor.New(tensor.FromScalar(2.0)), Fixed: true}},
			func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Square(nodes[1]) }},
		{"transposed", []gradcheck.Input{{Name: "x", Value: transposed}}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return gradcheck.Project(G.Must(G.Square(nodes[0])), 1)
		}},
		{"view", []gradcheck.Input{{Name: "x", Value: column.(*tensor.Dense)}}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return gradcheck.Project(G.Must(G.Square(nodes[0])), 1)
		}},
		{"column, row and one", []gradcheck.Input{{Value: wave(3, 1)}, {Value: wave(1, 3)}, {Value: wave(1, 1)}},
			func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
				outer := G.Must(G.Mul(nodes[0], nodes[1]))
				return G.Add(G.Must(gradcheck.Project(outer, 1)), G.Must(gradcheck.Project(G.Must(G.Square(nodes[2])), 2)))
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before []string
			for _, input := range tc.inputs {
				before = append(before, bytesOf(input.Value))
			}
			for _, c := range []gradcheck.Config{{}, {Directional: true}, {Directional: true, Seed: 7}} {
				if err := c.Check(tc.build, tc.inputs...); err != nil {
					t.Errorf("%+v: %v", c, err)
				}
			}
			for i, input := range tc.inputs {
				if bytesOf(input.Value) != before[i] {
					t.Errorf("the check changed input %d", i)
				}
			}
		})
	}
}

// TestWrongGradients checks that Check finds wrong gradients.
func TestWrongGradients(t *testing.T) {
	twice := cube()
	twice.df = func(_ int, x float64) float64 { return 2 * x * x }
	oneEntry := cube()
	oneEntry.df = func(i int, x float64) float64 {
		if i == 4 {
			return 3*x*x + 0.02
		}
		return 3 * x * x
	}
	missing := &elementwise{
		name: "x·exp(x)",
		f:    func(_ int, x float64) float64 { return x * math.Exp(x) },
		df:   func(_ int, x float64) float64 { return math.Exp(x) }, // + x·exp(x)
	}
	undeclared := halfDiff{cube()}

	for _, tc := range []struct {
		name        string
		op          G.Op
		index       []int
		off         int
		directional bool // a directional check finds the error too
	}{
		{"factor", twice, nil, 6, true},
		{"one entry", oneEntry, []int{4}, 1, true},
		{"missing term", missing, nil, 6, true},
		{"declared constant", undeclared, nil, 6, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			build := func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
				return G.Add(G.Must(G.Sum(G.Must(G.Square(nodes[1])))), G.Must(G.Sum(G.Must(G.ApplyOp(tc.op, nodes[0])))))
			}
			inputs := []gradcheck.Input{{Name: "x", Value: wave(6)}, {Name: "good", Value: wave(2, 2)}}
			err := gradcheck.Check(build, inputs...)
			var m *gradcheck.MismatchError
			if !errors.As(err, &m) {
				t.Fatalf("got %v, want a MismatchError", err)
			}
			if m.Input != "x" || m.Off != tc.off || m.Total != 10 || len(m.Also) != 0 || len(m.Index) != 1 {
				t.Errorf("got %+v, want input x, and %d of 10 entries off", m, tc.off)
			}
			if tc.index != nil && !slices.Equal(m.Index, tc.index) {
				t.Errorf("got index %v, want %v", m.Index, tc.index)
			}
			if math.Abs(m.Analytic-m.Numerical) <= m.Tolerance {
				t.Errorf("got %+v, want a difference above the tolerance", m)
			}
			err = gradcheck.Config{Directional: true}.Check(build, inputs...)
			if errors.As(err, &m) != tc.directional {
				t.Errorf("directional: got the error %v (a MismatchError: %t, want %t)", err, !tc.directional, tc.directional)
			} else if tc.directional && (m.Index != nil || m.Input != "x" || m.Total != 2) {
				t.Errorf("directional: got %+v, want input x, no index, and 2 compared directions", m)
			}
		})
	}
}

func TestMismatchNamesWorst(t *testing.T) {
	wrong := &elementwise{
		name: "wrong",
		f:    func(_ int, x float64) float64 { return x },
		df:   func(i int, _ float64) float64 { return []float64{1, 1.1, 3, 1.5}[i] },
	}
	err := gradcheck.Check(func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
		slip := &elementwise{name: "slip", f: wrong.f, df: func(int, float64) float64 { return 1.01 }}
		return G.Add(G.Must(G.Sum(slip.apply(nodes[0]))), G.Must(G.Sum(wrong.apply(nodes[1]))))
	}, gradcheck.Input{Name: "a", Value: wave(2)}, gradcheck.Input{Name: "b", Value: wave(4)})
	var m *gradcheck.MismatchError
	if !errors.As(err, &m) {
		t.Fatalf("got %v, want a MismatchError", err)
	}
	if m.Input != "b" || !slices.Equal(m.Index, []int{2}) || m.Analytic != 3 || math.Abs(m.Numerical-1) > 1e-6 ||
		math.Abs(m.Tolerance-1.01e-3) > 1e-6 || m.Off != 5 || m.Total != 6 || !slices.Equal(m.Also, []string{"a"}) {
		t.Errorf("got %+v, want b[2] as the worst entry, 5 of 6 entries off, and errors in a too", m)
	}
	const want = "gradcheck: gradient of b at [2]: analytic 3, numerical 1"
	if !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "also in a") {
		t.Errorf("got the message %q, want one that starts with %q and contains %q", err, want, "also in a")
	}
}

func TestNotFinite(t *testing.T) {
	for _, tc := range []struct {
		name  string
		value float64
		op    *elementwise
		want  string
	}{
		{"NaN gradient", 0.5, &elementwise{
			name: "nan",
			f:    func(_ int, x float64) float64 { return x },
			df:   func(i int, _ float64) float64 { return []float64{1, math.NaN()}[i] },
		}, "gradient of x at [1]: analytic NaN, numerical 1: the analytic value is not finite"},
		{"infinite gradient", 0, &elementwise{
			name: "root",
			f:    func(_ int, x float64) float64 { return math.Sqrt(math.Abs(x)) },
			df:   func(_ int, x float64) float64 { return 0.5 / math.Sqrt(math.Abs(x)) },
		}, "at [1]: analytic +Inf, numerical 0: the analytic value is not finite"},
		{"infinite difference", 1e-6, &elementwise{
			name: "inverse",
			f:    func(_ int, x float64) float64 { return 1 / x },
			df:   func(_ int, x float64) float64 { return -1 / x / x },
		}, "numerical -Inf: the cost is not finite within Eps of the point"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := gradcheck.Check(sumOf(tc.op), gradcheck.Input{Name: "x", Value: vec(1, tc.value)})
			var m *gradcheck.MismatchError
			if !errors.As(err, &m) || !slices.Equal(m.Index, []int{1}) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	square := func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Sum(G.Must(G.Square(nodes[0]))) }
	apply := func(op G.Op) build {
		return func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Sum(G.Must(G.ApplyOp(op, nodes[0]))) }
	}
	x := gradcheck.Input{Name: "x", Value: wave(3)}
	f32 := tensor.New(tensor.WithShape(2), tensor.Of(tensor.Float32))
	failed := errors.New("no such layer")

	for _, tc := range []struct {
		name   string
		config gradcheck.Config
		build  build
		inputs []gradcheck.Input
		want   string
	}{
		{"negative step", gradcheck.Config{Eps: -1}, square, []gradcheck.Input{x}, "Eps must be a positive number"},
		{"NaN tolerance", gradcheck.Config{Atol: math.NaN()}, square, []gradcheck.Input{x}, "Atol must be"},
		{"infinite tolerance", gradcheck.Config{Rtol: math.Inf(1)}, square, []gradcheck.Input{x}, "Rtol must be"},
		{"no inputs", gradcheck.Config{}, square, nil, "no input to differentiate"},
		{"all fixed", gradcheck.Config{}, square, []gradcheck.Input{{Value: wave(3), Fixed: true}}, "no input to differentiate"},
		{"float32", gradcheck.Config{}, square, []gradcheck.Input{{Value: f32}}, "input in0 is float32: use float64, or set Fixed"},
		{"two with one name", gradcheck.Config{}, square, []gradcheck.Input{x, x}, `two inputs are named "x"`},
		{"default name taken", gradcheck.Config{}, square, []gradcheck.Input{{Name: "in1", Value: wave(3)}, {Value: wave(3)}}, `named "in1"`},
		{"build fails", gradcheck.Config{}, func(*G.ExprGraph, G.Nodes) (*G.Node, error) { return nil, failed },
			[]gradcheck.Input{x}, "building the expression: no such layer"},
		{"build panics", gradcheck.Config{}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return nodes[9], nil },
			[]gradcheck.Input{x}, "panic: runtime error: index out of range"},
		{"build panics with a string", gradcheck.Config{}, func(*G.ExprGraph, G.Nodes) (*G.Node, error) { panic("no") },
			[]gradcheck.Input{x}, "panic: no"},
		{"not a scalar", gradcheck.Config{}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Square(nodes[0]) },
			[]gradcheck.Input{x}, "the cost must be a scalar, got shape (3): reduce it with Project"},
		{"float32 cost", gradcheck.Config{}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Sum(nodes[1]) },
			[]gradcheck.Input{x, {Value: f32, Fixed: true}}, "the cost must be float64, got float32"},
		{"another graph", gradcheck.Config{}, func(*G.ExprGraph, G.Nodes) (*G.Node, error) {
			return G.NewScalar(G.NewGraph(), G.Float64, G.WithName("c")), nil
		}, []gradcheck.Input{x}, "not in the graph given to build"},
		{"unbound", gradcheck.Config{}, func(g *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			y := G.NewVector(g, G.Float64, G.WithName("y"), G.WithShape(3))
			return G.Sum(G.Must(G.Add(nodes[0], y)))
		}, []gradcheck.Input{x}, "y has no value"},
		{"a weight that is bound", gradcheck.Config{}, func(g *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			w := G.NewVector(g, G.Float64, G.WithName("w"), G.WithShape(3), G.WithValue(wave(3)))
			return G.Sum(G.Must(G.HadamardProd(nodes[0], w)))
		}, []gradcheck.Input{x}, "reads w, which isn't among the inputs and would go unchecked: make it an Input, with Fixed if it isn't differentiated, or build the graph yourself and call Expr"},
		{"no derivative", gradcheck.Config{}, apply(noDiff{cube()}), []gradcheck.Input{x}, "cube has no derivative"},
		{"op fails", gradcheck.Config{}, apply(failing{cube()}), []gradcheck.Input{x}, "out of order"},
		{"shape of the gradient", gradcheck.Config{}, apply(flat{cube()}), []gradcheck.Input{x},
			"the gradient of x has shape (2), but x has shape (3)"},
		{"op overwrites", gradcheck.Config{}, apply(scribbler{cube()}), []gradcheck.Input{x}, "changed its input x"},
		{"NaN cost", gradcheck.Config{}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Sum(G.Must(G.Log(nodes[0]))) },
			[]gradcheck.Input{{Value: vec(1, -1)}}, "the cost is NaN at the given values"},
		{"step too small", gradcheck.Config{}, square, []gradcheck.Input{{Value: vec(1, 1e12)}}, "in0 at [1] is 1e+12: adding or subtracting Eps = 1e-06"},
		{"step too small for a direction", gradcheck.Config{Directional: true}, square, []gradcheck.Input{{Value: vec(1, 1e12)}},
			"in0 at [1] is 1e+12: adding or subtracting Eps = 1e-06"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.config.Check(tc.build, tc.inputs...)
			var m *gradcheck.MismatchError
			switch {
			case err == nil || !strings.Contains(err.Error(), tc.want):
				t.Errorf("got %v, want %q", err, tc.want)
			case !strings.HasPrefix(err.Error(), "gradcheck: "):
				t.Errorf("got the error %q, want one that begins with %q", err, "gradcheck: ")
			case errors.As(err, &m):
				t.Errorf("got the MismatchError %v, want another type of error", err)
			}
		})
	}
	if err := gradcheck.Check(func(*G.ExprGraph, G.Nodes) (*G.Node, error) { return nil, failed }, x); !errors.Is(err, failed) {
		t.Errorf("got the error %v, want one that wraps build's error", err)
	}
}

func TestNondeterministic(t *testing.T) {
	runs := 0.0
	random := cube()
	random.f = func(_ int, x float64) float64 { runs++; return x + runs }
	randomGrad := cube()
	randomGrad.df = random.f

	count := 0.0
	stateful := &elementwise{ // correct only if a gradient follows every cost
		name: "stateful",
		f:    func(_ int, x float64) float64 { count++; return x * count },
		df:   func(i int, _ float64) float64 { count = 0; return float64(i + 1) },
	}

	x := gradcheck.Input{Name: "x", Value: wave(3)}
	for name, build := range map[string]build{
		"stateful": sumOf(stateful),
		"cost":     sumOf(random),
		"gradient": sumOf(randomGrad),
		"gorgonia.Dropout": func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return gradcheck.Project(G.Must(G.Dropout(nodes[0], 0.5)), 1)
		},
	} {
		node := x
		if name == "gorgonia.Dropout" {
			node.Value = wave(64)
		}
		if err := gradcheck.Check(build, node); err == nil || !strings.Contains(err.Error(), "the expression is not deterministic") {
			t.Errorf("%s: got %v, want an error with %q", name, err, "the expression is not deterministic")
		}
	}
}

// TestGorgoniaFaults checks that Check finds known errors in Gorgonia's ops.
func TestGorgoniaFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		shape []int
		build build
		want  string
	}{
		{"Sum of four axes over axis 2", []int{2, 2, 3, 2}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return gradcheck.Project(G.Must(G.Sum(G.Must(G.Square(nodes[0])), 2)), 1)
		}, "gradient of x at"},
		{"Reshape of a value used twice", []int{2, 3}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			h := G.Must(G.Tanh(nodes[0]))
			sq := G.Must(G.Square(G.Must(G.Reshape(h, tensor.Shape{6}))))
			return G.Add(G.Must(gradcheck.Project(h, 2)), G.Must(gradcheck.Project(sq, 1)))
		}, "gradient of x at"},
		{"Reshape of an input", []int{2, 3}, func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			return G.Sum(G.Must(G.HadamardProd(G.Must(G.Reshape(nodes[0], tensor.Shape{3, 2})), G.NewConstant(2.0))))
		}, "changed its input x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := gradcheck.Check(tc.build, gradcheck.Input{Name: "x", Value: wave(tc.shape...)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
