package gradcheck_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

// layer builds Σ w·tanh(xW + b) in a new graph, with the given tensors.
func layer(x, w, b *tensor.Dense) (cost, xn, wn, bn *G.Node) {
	g := G.NewGraph()
	node := func(name string, v *tensor.Dense) *G.Node {
		return G.NewTensor(g, v.Dtype(), v.Dims(), G.WithName(name), G.WithShape(v.Shape()...), G.WithValue(v))
	}
	xn, wn, bn = node("x", x), node("w", w), node("b", b)
	y := G.Must(G.Tanh(G.Must(G.BroadcastAdd(G.Must(G.Mul(xn, wn)), bn, nil, []byte{0}))))
	return G.Must(gradcheck.Project(y, 3)), xn, wn, bn
}

func TestExpr(t *testing.T) {
	x, w, b := wave(4, 3), wave(3, 2), wave(1, 2)
	must.Do(t, b.Reshape(2))
	before := bytesOf(x) + bytesOf(w) + bytesOf(b)

	t.Run("without a gradient in the graph", func(t *testing.T) {
		cost, xn, wn, bn := layer(x, w, b)
		for range 3 { // the first call adds the gradient to the graph; the others use it
			must.Do(t, gradcheck.Expr(cost, wn, bn, xn))
		}
		must.Do(t, (gradcheck.Config{Directional: true}).Expr(cost, wn, bn, xn))
	})
	t.Run("with a gradient in the graph", func(t *testing.T) {
		cost, _, wn, bn := layer(x, w, b)
		must.Get(G.Grad(cost, wn, bn))(t)
		nodes := len(cost.Graph().AllNodes())
		must.Do(t, gradcheck.Expr(cost, wn))
		if n := len(cost.Graph().AllNodes()); n != nodes {
			t.Errorf("the graph has %d nodes, want %d, the number before", n, nodes)
		}
	})
	t.Run("between the steps of training", func(t *testing.T) {
		cost, _, wn, bn := layer(x, w, b)
		must.Get(G.Grad(cost, wn, bn))(t)
		var seen G.Value
		G.Read(cost, &seen)
		vm := G.NewTapeMachine(cost.Graph(), G.BindDualValues(wn, bn))
		defer vm.Close()
		step := func() (float64, []float64) {
			t.Helper()
			must.Do(t, vm.RunAll())
			vm.Reset()
			d := must.Get(wn.Grad())(t)
			return seen.Data().(float64), slices.Clone(d.Data().([]float64))
		}
		cost1, grad1 := step()
		must.Do(t, gradcheck.Expr(cost, bn, wn))
		if seen.Data().(float64) != cost1 {
			t.Error("the check wrote to a variable that the graph's own Read fills")
		}
		if d, _ := wn.Grad(); !slices.Equal(d.Data().([]float64), grad1) {
			t.Error("the check added to a bound gradient")
		}
		cost2, grad2 := step()
		for i := range grad1 {
			grad1[i] *= 2 // gradients accumulate
		}
		if cost2 != cost1 || !slices.Equal(grad2, grad1) {
			t.Error("a run after the check differs from a run before it")
		}
	})
	t.Run("scalar value", func(t *testing.T) {
		g := G.NewGraph()
		s := G.NewScalar(g, G.Float64, G.WithName("s"), G.WithValue(0.3))
		must.Do(t, gradcheck.Expr(G.Must(G.Exp(s)), s))
		if s.Value().Data() != 0.3 {
			t.Errorf("s is %v, want 0.3", s.Value())
		}
	})
	t.Run("in place, strided", func(t *testing.T) {
		v := must.Get(wave(4, 3).Slice(nil, tensor.S(1)))(t)
		view := v.(*tensor.Dense)
		was := bytesOf(view)
		g := G.NewGraph()
		n := G.NewVector(g, G.Float64, G.WithName("view"), G.WithShape(4), G.WithValue(view))
		cost := G.Must(gradcheck.Project(n, 1))
		must.Do(t, gradcheck.Expr(cost, n))
		if bytesOf(view) != was {
			t.Error("the check changed the view")
		}
	})
	if after := bytesOf(x) + bytesOf(w) + bytesOf(b); after != before {
		t.Errorf("the values are\n%s\nwant the values before\n%s", after, before)
	}
}

func TestExprRestoresAfterErrors(t *testing.T) {
	evals := 0
	failLater := cube()
	wrong := cube()
	wrong.df = func(_ int, x float64) float64 { return x }
	for name, op := range map[string]G.Op{
		"mismatch":   wrong,
		"scribbling": scribbler{cube()},
		"failing":    failing{cube()},
		"later":      lateFailure{failLater, &evals},
	} {
		for _, c := range []gradcheck.Config{{}, {Directional: true}} {
			evals = 0
			v := vec(0.1, math.Copysign(0, -1), 0.3)
			before := bytesOf(v)
			g := G.NewGraph()
			x := G.NewVector(g, G.Float64, G.WithName("x"), G.WithShape(3), G.WithValue(v))
			if err := c.Expr(G.Must(G.Sum(G.Must(G.ApplyOp(op, x)))), x); err == nil {
				t.Errorf("%s: got no error", name)
			}
			if bytesOf(v) != before {
				t.Errorf("%s, %+v: the value is %s, want %s", name, c, bytesOf(v), before)
			}
			for _, n := range g.AllNodes() {
				if strings.HasPrefix(n.Name(), "read") {
					t.Errorf("%s: the check left the node %v in the graph", name, n.Name())
				}
			}
		}
	}
}

func TestExprErrors(t *testing.T) {
	x, w, b := wave(4, 3), wave(3, 2), vec(0.1, 0.2)
	cost, _, wn, bn := layer(x, w, b)
	otherCost, otherX, _, _ := layer(x, w, b)

	partial, _, partialW, partialB := layer(x, w, b)
	differentiated, _, dw, _ := layer(x, w, b)
	doubled := G.Must(G.Add(differentiated, differentiated))
	inner, _, iw, _ := layer(x, w, b)
	outer := G.Must(G.Add(inner, inner))
	must.Do(t, errors.Join(second(G.Grad(partial, partialW)), second(G.Grad(differentiated, dw)), second(G.Grad(outer, iw))))

	g := G.NewGraph()
	mine := vec(1, 2, 3)
	tied := [2]*G.Node{
		G.NewVector(g, G.Float64, G.WithName("tied0"), G.WithShape(3), G.WithValue(mine)),
		G.NewVector(g, G.Float64, G.WithName("tied1"), G.WithShape(3), G.WithValue(mine)),
	}
	tiedCost := G.Must(gradcheck.Project(G.Must(G.HadamardProd(tied[0], tied[1])), 1))
	unbound := G.NewScalar(g, G.Float64, G.WithName("unbound"))
	f32 := G.NewScalar(g, G.Float32, G.WithName("f32"), G.WithValue(float32(1)))

	for _, tc := range []struct {
		name string
		cost *G.Node
		wrt  []*G.Node
		want string
	}{
		{"no inputs", cost, nil, "there is no input to differentiate"},
		{"another graph", cost, []*G.Node{otherX}, "x is not in the cost's graph"},
		{"not an input", cost, []*G.Node{cost}, "is not an input"},
		{"twice", otherCost, []*G.Node{otherX, otherX}, "x is given twice"},
		{"float32", tiedCost, []*G.Node{f32}, "f32 is float32: only float64 can be checked"},
		{"no value", tiedCost, []*G.Node{unbound}, "unbound has no value"},
		{"shared memory", tiedCost, tied[:], "tied0 and tied1 share memory"},
		{"shared with a fixed input", tiedCost, tied[1:], "tied1 and tied0 share memory"},
		{"differentiated in part", partial, []*G.Node{partialW, partialB}, "the gradient was taken without b"},
		{"second cost", doubled, []*G.Node{dw}, "differentiated for another cost"},
		{"part of the cost", inner, []*G.Node{iw}, "differentiated for another cost"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := gradcheck.Expr(tc.cost, tc.wrt...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "gradcheck: ") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := gradcheck.Expr(cost, wn, bn); err != nil {
		t.Errorf("the graph can't be used after errors: %v", err)
	}

	logits := G.NewMatrix(g, G.Float64, G.WithName("logits"), G.WithShape(2, 2), G.WithValue(wave(2, 2)))
	classes := G.NewVector(g, tensor.Int, G.WithName("classes"), G.WithShape(2), G.WithValue(tensor.New(tensor.WithBacking([]int{0, 2}))))
	loss := must.Get(layers.CrossEntropy(&layers.Build{}, logits, classes, layers.CrossEntropyOptions{}))(t)
	const want = "gradcheck: running the expression: cross-entropy: target 2 at position 1"
	if err := gradcheck.Expr(loss.Mean, logits); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want an error that begins with %q", err, want)
	}
}

func second(_ G.Nodes, err error) error { return err }

func TestProject(t *testing.T) {
	value := func(y *tensor.Dense, seed uint64) float64 {
		t.Helper()
		g := G.NewGraph()
		n := G.NewTensor(g, y.Dtype(), y.Dims(), G.WithName("y"), G.WithShape(y.Shape()...), G.WithValue(y))
		var v G.Value
		G.Read(G.Must(gradcheck.Project(n, seed)), &v)
		vm := G.NewTapeMachine(g)
		defer vm.Close()
		must.Do(t, vm.RunAll())
		return v.Data().(float64)
	}
	one := func(entry int) *tensor.Dense {
		y := tensor.New(tensor.WithShape(2, 3, 2, 2, 2), tensor.Of(tensor.Float64))
		y.Float64s()[entry] = 1
		return y
	}
	positive := 0
	for i := range 48 {
		w := value(one(i), 5)
		if math.Abs(w) < 0.5 || math.Abs(w) >= 1.5 {
			t.Errorf("weight %d is %v, want a magnitude from 0.5 to 1.5", i, w)
		}
		if w > 0 {
			positive++
		}
		if w != value(one(i), 5) || w == value(one(i), 6) {
			t.Errorf("weight %d differs between two calls with one seed, or is the same for two seeds", i)
		}
	}
	if positive < 10 || positive > 38 {
		t.Errorf("%d of 48 weights are positive, want 10 to 38", positive)
	}

	g := G.NewGraph()
	single := G.NewVector(g, G.Float32, G.WithName("y"), G.WithShape(2))
	if _, err := gradcheck.Project(single, 1); err == nil || !strings.Contains(err.Error(), "must be float64") {
		t.Errorf("got the error %v, want one with %q", err, "must be float64")
	}
	s := G.NewScalar(g, G.Float64, G.WithName("s"), G.WithValue(0.4))
	if err := gradcheck.Expr(G.Must(gradcheck.Project(G.Must(G.Exp(s)), 1)), s); err != nil {
		t.Errorf("scalar: %v", err)
	}
}

// TestExprFreesItsMachines checks many expressions one after the other: memory use doesn't grow.
func TestExprFreesItsMachines(t *testing.T) {
	check := func() {
		g := G.NewGraph()
		x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(20, 20), G.WithInit(G.Ones()))
		cost := G.Must(G.Sum(G.Must(G.Square(x))))
		must.Do(t, gradcheck.Expr(cost, x))
	}
	check()
	before := memory.HeapInUse()
	const rounds = 20
	for range rounds {
		check()
	}
	if grown := memory.HeapInUse() - before; grown > rounds*10_000 {
		t.Errorf("%d checks left %d bytes, want at most %d", rounds, grown, rounds*10_000)
	}
}
