package ops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
)

// Spoiling returns Buffers that fill freed memory with NaN.
func Spoiling() *Buffers {
	return &Buffers{Freed: func(words []uint64) {
		for i := range words {
			words[i] = ^uint64(0)
		}
	}}
}

// Near reports an error if an element of got differs from want by more than tol, or than tol times its magnitude above
// 1.
func Near(t *testing.T, what string, got, want [][]float64, tol float64) {
	t.Helper()
	for i := range want {
		for j, w := range want[i] {
			if !(math.Abs(got[i][j]-w) <= tol*max(1, math.Abs(w))) {
				t.Fatalf("%s: element %d of result %d is %v, want %v", what, j, i, got[i][j], w)
			}
		}
	}
}

// matrix returns an input node that holds small numbers.
func matrix(g *G.ExprGraph, name string, rows, columns int) *G.Node {
	x := make([]float64, rows*columns)
	for i := range x {
		x[i] = float64(i%7) - 3
	}
	return G.NewMatrix(g, tensor.Float64, G.WithShape(rows, columns), G.WithName(name),
		G.WithValue(tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking(x))))
}

// act adds a GELU op.
func act(t *testing.T, e *Env, x *G.Node) *G.Node { return made(t)(Activate(e, x, GELU)) }

func made(t *testing.T) func(*G.Node, error) *G.Node {
	return func(n *G.Node, err error) *G.Node {
		t.Helper()
		must.Do(t, err)
		return n
	}
}

// TestBuffersHoldWhatMayBeRead builds graphs whose values have readers that the edges between ops don't show. It reads
// the nodes that build returns after each run, as a solver reads gradients.
func TestBuffersHoldWhatMayBeRead(t *testing.T) {
	grad := func(t *testing.T, cost *G.Node, wrt ...*G.Node) G.Nodes {
		t.Helper()
		grads := must.Get(G.Grad(cost, wrt...))(t)
		return grads
	}
	for _, c := range []struct {
		name  string
		build func(t *testing.T, e *Env, x, p *G.Node) G.Nodes
	}{
		{"Gorgonia's views", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			y := act(t, e, x)
			view := made(t)(G.Reshape(made(t)(G.Reshape(y, tensor.Shape{24})), tensor.Shape{4, 6}))
			for range 5 { // ops that could take y's memory
				x = act(t, e, x)
			}
			return G.Nodes{made(t)(Add(e, made(t)(G.Reshape(view, tensor.Shape{6, 4})), x))}
		}},
		{"Gorgonia's ops, which may overwrite their inputs", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			sum := made(t)(G.Add(act(t, e, x), act(t, e, p)))
			for range 5 {
				x = act(t, e, x)
			}
			return G.Nodes{made(t)(Add(e, made(t)(G.Neg(sum)), x))}
		}},
		{"a result of Gorgonia's own op", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			y := made(t)(G.Reshape(act(t, e, x), tensor.Shape{24}))
			for range 5 {
				x = act(t, e, x)
			}
			return G.Nodes{y, x}
		}},
		{"a gradient of an input, with other readers", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			y := act(t, e, act(t, e, made(t)(Add(e, act(t, e, act(t, e, x)), p))))
			return grad(t, made(t)(Sum(e, y)), p, x)
		}},
		{"several results of an op", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			classes := G.NewVector(x.Graph(), tensor.Int, G.WithShape(6), G.WithName("classes"),
				G.WithValue(tensor.New(tensor.WithShape(6), tensor.WithBacking([]int{0, 1, 2, 3, 0, -1}))))
			right, counted, err := CountRight(e, act(t, e, x), classes, -1, false)
			must.Do(t, err)
			return G.Nodes{right, counted}
		}},
		{"memory that an op keeps for its gradient", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			y := made(t)(Linear(e, x, p, nil, GELU))
			for range 3 {
				y = made(t)(Dropout(e, act(t, e, y), 0.5))
			}
			return grad(t, made(t)(Sum(e, y)), p, x)
		}},
		{"an op of another Env", func(t *testing.T, e *Env, x, p *G.Node) G.Nodes {
			y := act(t, &Env{}, act(t, e, x))
			for range 3 {
				x = act(t, e, x)
			}
			return G.Nodes{made(t)(Add(e, y, x))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(b *Buffers, runs int) (out []float64) {
				g := G.NewGraph()
				nodes := c.build(t, &Env{Buffers: b, Training: true}, matrix(g, "x", 6, 4), matrix(g, "p", 6, 4))
				vm := G.NewTapeMachine(g)
				defer vm.Close()
				for range runs {
					out = out[:0]
					vm.Reset()
					must.Do(t, vm.RunAll())
					for _, n := range nodes {
						out = append(out, elements[float64](n.Value(), n.Shape().TotalSize())...)
					}
				}
				return out
			}
			for runs := range 3 {
				if got, want := run(Spoiling(), runs+1), run(nil, runs+1); !slices.Equal(got, want) {
					t.Errorf("after %d runs: %v, want %v", runs+1, got, want)
				}
			}
		})
	}
}

// TestBuffersReuse checks that a chain of ops, however long, needs memory for only two outputs.
func TestBuffersReuse(t *testing.T) {
	b := &Buffers{}
	words := func() (n int) {
		for _, s := range b.slabs {
			n += len(s.words)
		}
		return n
	}
	for i, c := range []struct{ ops, size, want int }{{5, 6, 12}, {3, 4, 12}, {4, 10, 20}, {2, 6, 20}, {1, 30, 40}} {
		g := G.NewGraph()
		e := &Env{Buffers: b}
		x := matrix(g, "x", c.size, 1)
		for range c.ops {
			x = act(t, e, x)
		}
		if shared, own, err := Plan(g); shared != 8*c.want || own != 0 || err != nil {
			t.Errorf("graph %d: Plan gives %d shared bytes, %d own bytes and the error %v, want %d shared bytes", i, shared, own, err, 8*c.want)
		}
		if got := words(); i == 0 && got != 0 {
			t.Errorf("before the first run, memory for %d numbers is allocated, want none", got)
		}
		vm := G.NewTapeMachine(g)
		defer vm.Close()
		for range 2 {
			vm.Reset()
			must.Do(t, vm.RunAll())
		}
		if got := words(); got != c.want {
			t.Errorf("graph %d, with %d ops on %d numbers, needs memory for %d numbers, want %d", i, c.ops, c.size, got, c.want)
		}
	}
}

// TestGradientsKeepWhatTheyRead compares the memory of longer and shorter chains of ops whose first weight is learned.
// Each further op needs only the memory of what its gradient reads.
func TestGradientsKeepWhatTheyRead(t *testing.T) {
	for name, c := range map[string]struct {
		op   func(e *Env, x, w *G.Node) (*G.Node, error)
		want int // size of what the gradient reads, in multiples of the op's output
	}{
		"a fixed weight":           {func(e *Env, x, w *G.Node) (*G.Node, error) { return Linear(e, x, w, nil, Identity) }, 0},
		"a fixed weight with GELU": {func(e *Env, x, w *G.Node) (*G.Node, error) { return Linear(e, x, w, nil, GELU) }, 1},
		"a fixed weight with ReLU": {func(e *Env, x, w *G.Node) (*G.Node, error) { return Linear(e, x, w, nil, ReLU) }, 1},
		"dropout":                  {func(e *Env, x, _ *G.Node) (*G.Node, error) { return Dropout(e, x, 0.5) }, 1},
		"RMS norm":                 {func(e *Env, x, w *G.Node) (*G.Node, error) { return RMSNorm(e, x, made(t)(G.Slice(w, G.S(0))), 1) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			size := func(length int) int {
				g, fixed := G.NewGraph(), G.Nodes{}
				e := &Env{Training: true, Fixed: &fixed, Buffers: Spoiling()}
				w, learned := matrix(g, "w", 4, 4), matrix(g, "learned", 4, 4)
				fixed = append(fixed, w)
				x := made(t)(Linear(e, matrix(g, "x", 64, 4), learned, nil, Identity))
				for range length {
					x = made(t)(c.op(e, x, w))
				}
				must.Get(G.Grad(made(t)(Sum(e, x)), learned))(t)
				bytes, _, err := Plan(g)
				must.Do(t, err)
				return bytes
			}
			if got, want := size(12)-size(8), 4*8*64*4*c.want; got != want {
				t.Errorf("4 more ops need %d bytes more, want %d", got, want)
			}
		})
	}
}

// TestPlanWithoutBuffers counts the outputs of Heed's ops, and of Gorgonia's ops that don't overwrite the output of a
// Heed op.
func TestPlanWithoutBuffers(t *testing.T) {
	g := G.NewGraph()
	e := &Env{}
	x := act(t, e, act(t, e, matrix(g, "x", 3, 5))) // 30 numbers
	x = made(t)(G.Mul(x, matrix(g, "w", 5, 4)))     // 12
	x = made(t)(G.Tanh(x))                          // 12
	x = made(t)(G.Tanh(act(t, e, x)))               // 12
	var read G.Value
	G.Read(x, &read)
	if shared, own, err := Plan(g); shared != 0 || own != 8*66 || err != nil {
		t.Errorf("Plan gives %d shared bytes, %d own bytes and the error %v, want 0 and %d bytes", shared, own, err, 8*66)
	}
}

// TestBuffersErrors runs graphs that give errors, and checks that a graph can run again after an error.
func TestBuffersErrors(t *testing.T) {
	run := func(vm G.VM) error { vm.Reset(); return vm.RunAll() }
	t.Run("two Envs of a graph", func(t *testing.T) {
		b, g := &Buffers{}, G.NewGraph()
		act(t, &Env{Buffers: b}, act(t, &Env{Buffers: b}, matrix(g, "x", 2, 3)))
		vm := G.NewTapeMachine(g)
		defer vm.Close()
		for range 2 {
			must.Fail(t, run(vm), "two Builds")
		}
	})
	t.Run("a run that fails", func(t *testing.T) {
		b, g := Spoiling(), G.NewGraph()
		e := &Env{Buffers: b}
		ids := []int{0, 5}
		x := act(t, e, matrix(g, "x", 2, 3))
		rows := made(t)(Embedding(e, x, G.NewVector(g, tensor.Int, G.WithShape(2), G.WithName("ids"),
			G.WithValue(tensor.New(tensor.WithShape(2), tensor.WithBacking(ids))))))
		y := act(t, e, act(t, e, made(t)(Add(e, rows, x))))
		vm := G.NewTapeMachine(g)
		defer vm.Close()
		if err := run(vm); err == nil {
			t.Fatal("an unknown id gives no error")
		}
		ids[1] = 1
		var first string
		for i := range 3 {
			must.Do(t, run(vm))
			got := fmt.Sprint(y.Value())
			if first = max(first, got); got != first || strings.Contains(got, "NaN") {
				t.Errorf("run %d gives %v, want %v as in the first run, without NaN", i, got, first)
			}
		}
	})
	t.Run("a node that was added after a run", func(t *testing.T) {
		b, g := Spoiling(), G.NewGraph()
		e := &Env{Buffers: b}
		x := matrix(g, "x", 2, 3)
		y := act(t, e, x)
		z := act(t, e, act(t, e, act(t, e, y)))
		must.Do(t, run(G.NewTapeMachine(g)))
		late := made(t)(Add(e, y, z))
		must.Do(t, run(G.NewTapeMachine(g)))
		if strings.Contains(fmt.Sprint(late.Value()), "NaN") {
			t.Errorf("got %v, want no NaN", late.Value())
		}
	})
}

// TestLinearWithoutDerivative checks that Linear computes its activation in place if no derivative needs the
// activation's input, and that the output has the same bits either way.
func TestLinearWithoutDerivative(t *testing.T) {
	for act := ReLU; act.Known(); act++ {
		var outputs [][]float64
		for _, derive := range []bool{false, true} {
			g := G.NewGraph()
			e, p := &Env{}, matrix(g, "p", 6, 4)
			y := made(t)(Linear(e, matrix(g, "x", 5, 4), p, nil, act))
			if derive {
				must.Get(G.Grad(made(t)(Sum(e, y)), p))(t)
			}
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			must.Do(t, vm.RunAll())
			outputs = append(outputs, y.Value().Data().([]float64))
			if kept := len(y.Op().(*op).fills) > 1; kept != (derive && act.needsInput()) {
				t.Errorf("%v, derivative %t: the activation's input is kept: %t, want %t", act, derive, kept, !kept)
			}
		}
		if !slices.Equal(outputs[0], outputs[1]) {
			t.Errorf("%v gives %v without a derivative, but %v with one", act, outputs[0], outputs[1])
		}
	}
}

// TestBuffersInAnyOrder runs random graphs. Each run uses a new random order of ops, not the planned order.
func TestBuffersInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := Spoiling()
	for range 50 {
		g := G.NewGraph()
		e := &Env{Buffers: b}
		nodes := G.Nodes{matrix(g, "x", 1+r.IntN(20), 1)}
		some := func() *G.Node { return nodes[max(0, len(nodes)-1-r.IntN(8))] }
		for range 30 {
			x, y := some(), some()
			switch r.IntN(3) {
			case 0:
				nodes = append(nodes, act(t, e, x))
			case 1:
				square := made(t)(MatMul(e, x, y, false, true, 1e-3, false))
				nodes = append(nodes, made(t)(MatMul(e, square, y, false, false, 1e-3, false)))
			default:
				nodes = append(nodes, made(t)(Add(e, x, y)))
			}
		}
		var want []float64
		for range 4 {
			values := map[*G.Node]G.Value{nodes[0]: nodes[0].Value()}
			run := func(n *G.Node) {
				var operands []G.Value
				for _, child := range n.Op().(*op).inputs {
					if values[child] == nil {
						return
					}
					operands = append(operands, values[child])
				}
				values[n] = must.Get(n.Op().Do(operands...))(t)
			}
			for len(values) < len(g.AllNodes()) {
				if n := g.AllNodes()[r.IntN(len(g.AllNodes()))]; values[n] == nil {
					run(n)
				}
			}
			got := values[nodes[len(nodes)-1]].Data().([]float64)
			if want == nil {
				want = slices.Clone(got)
			}
			if !slices.Equal(got, want) || math.IsNaN(got[0]) {
				t.Fatalf("got %v, want %v as in the first run, without NaN", got, want)
			}
		}
	}
}

// TestBuffersReserve reserves memory for a large graph, then runs a small graph and the large one.
func TestBuffersReserve(t *testing.T) {
	build := func(b *Buffers, rows int) *G.ExprGraph {
		g := G.NewGraph()
		act(t, &Env{Buffers: b}, matrix(g, "x", rows, 8))
		return g
	}
	like, b := &Buffers{}, &Buffers{}
	if _, _, err := Plan(build(like, 100)); err != nil {
		t.Fatal(err)
	}
	b.Reserve(like)
	var first *uint64
	for _, rows := range []int{10, 100} {
		vm := G.NewTapeMachine(build(b, rows))
		defer vm.Close()
		must.Do(t, vm.RunAll())
		if now := &b.slabs[0].words[0]; first == nil {
			first = now
		} else if first != now {
			t.Error("the memory was allocated twice")
		}
	}
}
