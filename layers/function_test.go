package layers_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// A Function takes the ids of two sequences and returns their logits.
func ExampleFunction() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	encoder, err := layers.NewEncoder(params, layers.ModelConfig{
		Vocab: 100, Positions: layers.Learned{MaxLen: 16}, Dim: 32, Outputs: 5, Layers: 1,
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}},
	})
	check(err)
	predict, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		ids := G.NewMatrix(g, tensor.Int, G.WithName("ids"), G.WithShape(2, 4))
		logits, err := encoder.Forward(b, ids, layers.Mask{})
		return G.Nodes{ids}, G.Nodes{logits}, err
	})
	check(err)

	out, err := predict.Call(tensor.New(tensor.WithShape(2, 4), tensor.WithBacking([]int{11, 12, 13, 14, 21, 22, 23, 24})))
	check(err)
	fmt.Println(out[0].Shape())
	_, err = predict.Call(tensor.New(tensor.WithShape(4), tensor.WithBacking([]int{11, 12, 13, 14})))
	fmt.Println(err)
	// Output:
	// (2, 4, 5)
	// function: input "ids" must be int of shape (2, 4), got int of shape (4)
}

func vector64(x ...float64) *tensor.Dense {
	return tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x))
}

// timesNumber builds y = a·x for a matrix x and a scalar a. The outputs are y, its row sums, its sum, x, and y again.
func timesNumber(rows, columns int) func(*layers.Build, *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
	return func(_ *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(rows, columns))
		a := G.NewScalar(g, tensor.Float64, G.WithName("a"))
		y, err := G.Mul(x, a)
		if err != nil {
			return nil, nil, err
		}
		rowSums, err := G.Sum(y, 1)
		if err != nil {
			return nil, nil, err
		}
		sum, err := G.Sum(y)
		return G.Nodes{x, a}, G.Nodes{y, rowSums, sum, x, y}, err
	}
}

func TestFunctionValues(t *testing.T) {
	number := func(x float64) *tensor.Dense { return tensor.New(tensor.FromScalar(x)) }
	whole := tensor.New(tensor.WithShape(2, 6), tensor.WithBacking([]float64{1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0, 0}))
	view := must.Get(whole.Slice(nil, tensor.S(0, 3)))(t).(*tensor.Dense)
	turned := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 4, 2, 5, 3, 6}))
	must.Do(t, turned.T())
	for _, c := range []struct {
		name string
		x    *tensor.Dense
		want []float64
	}{
		{"a tensor", tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6})), []float64{1, 2, 3, 4, 5, 6}},
		{"a view", view, []float64{1, 2, 3, 4, 5, 6}},
		{"a transpose", turned, []float64{1, 2, 3, 4, 5, 6}},
		{"a batch of one", tensor.New(tensor.WithShape(1, 3), tensor.WithBacking([]float64{1, 2, 3})), []float64{1, 2, 3}},
		{"a batch of one number", tensor.New(tensor.WithShape(1, 1), tensor.WithBacking([]float64{7})), []float64{7}},
		{"a number for a batch of one", tensor.New(tensor.WithBacking([]float64{7})), []float64{7}},
		{"a column", tensor.New(tensor.WithShape(3, 1), tensor.WithBacking([]float64{7, 8, 9})), []float64{7, 8, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape := c.x.Shape()
			if c.x.IsScalar() {
				shape = tensor.Shape{1, 1}
			}
			rows, columns := shape[0], shape[1]
			f := must.Get(layers.NewFunction(timesNumber(rows, columns)))(t)
			first := must.Get(f.Call(c.x, number(1)))(t)
			out := must.Get(f.Call(c.x, number(2)))(t)
			twice, sums, sum := make([]float64, len(c.want)), make([]float64, rows), 0.0
			for i, x := range c.want {
				twice[i] = 2 * x
				sums[i/columns] += 2 * x
				sum += 2 * x
			}
			for i, w := range []struct {
				shape  tensor.Shape
				values any
			}{{shape, twice}, {tensor.Shape{rows}, sums}, {tensor.Shape{}, sum}, {shape, c.want}, {shape, twice}} {
				if !slices.Equal(out[i].Shape(), w.shape) || fmt.Sprint(out[i].Data()) != fmt.Sprint(w.values) {
					t.Errorf("output %d is %v of shape %v, want %v of shape %v", i, out[i].Data(), out[i].Shape(), w.values, w.shape)
				}
			}
			sameBits(t, "the first call's copy", floats(t, first[0]), c.want)
		})
	}
}

// TestFunctionAfterAnError checks that a Function still works after a failed call.
func TestFunctionAfterAnError(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
	e := must.Get(layers.NewEmbedding(p, 3, 2, layers.Init{}))(t)
	f := must.Get(layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		ids := G.NewVector(g, tensor.Int, G.WithName("ids"), G.WithShape(2))
		y, err := e.Forward(b, ids)
		return G.Nodes{ids}, G.Nodes{y}, err
	}))(t)
	ids := func(a, b int) *tensor.Dense { return tensor.New(tensor.WithBacking([]int{a, b})) }
	_, err := f.Call(ids(0, 3))
	if want := "function: embedding(3, 2)(2, 2): id 3 at position 1"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got the error %v, want one that begins with %q", err, want)
	}
	out := must.Get(f.Call(ids(0, 2)))(t)
	table := p.All()[0].Value.Float64s()
	sameBits(t, "the embeddings", out[0].Float64s(), []float64{table[0], table[1], table[4], table[5]})
}

func TestFunctionErrors(t *testing.T) {
	type nodes = G.Nodes
	x := func(g *G.ExprGraph) *G.Node {
		return G.NewVector(g, tensor.Float64, G.WithName("x"), G.WithShape(2))
	}
	for _, c := range []struct {
		name  string
		build func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)
		want  string
	}{
		{"an error", func(*layers.Build, *G.ExprGraph) (_, _ nodes, _ error) { return nil, nil, errors.New("mine") }, "mine"},
		{"a panic", func(*layers.Build, *G.ExprGraph) (_, _ nodes, _ error) { panic("mine") }, "function: building the graph: mine"},
		{"no outputs", func(_ *layers.Build, g *G.ExprGraph) (_, _ nodes, _ error) { return nodes{x(g)}, nil, nil }, "no outputs"},
		{"an output in another graph", func(_ *layers.Build, g *G.ExprGraph) (_, _ nodes, _ error) {
			return nodes{x(g)}, nodes{x(g), x(G.NewGraph())}, nil
		}, "output 1 must be"},
		{"an input that is computed", func(_ *layers.Build, g *G.ExprGraph) (_, _ nodes, _ error) {
			return nodes{x(g), G.Must(G.Neg(x(g)))}, nodes{x(g)}, nil
		}, "function: input 1 must be"},
		{"one input twice", func(_ *layers.Build, g *G.ExprGraph) (_, _ nodes, _ error) {
			return nodes{x(g), x(g)}, nodes{x(g)}, nil
		}, `input "x" is returned twice`},
		{"an input too large for any machine", func(_ *layers.Build, g *G.ExprGraph) (_, _ nodes, _ error) {
			x := G.NewVector(g, tensor.Float64, G.WithName("x"), G.WithShape(math.MaxInt))
			return nodes{x}, nodes{x}, nil
		}, fmt.Sprintf(`input "x" of shape (%d): `, math.MaxInt)},
		{"an input left out", func(_ *layers.Build, g *G.ExprGraph) (_, _ nodes, _ error) {
			return nil, nodes{G.Must(G.Neg(x(g)))}, nil
		}, `input "x" has no value: return it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Refuse(layers.NewFunction(c.build))(t, c.want)
		})
	}
	f := must.Get(layers.NewFunction(timesNumber(2, 1)))(t)
	a := tensor.New(tensor.FromScalar(1.0))
	for _, c := range []struct {
		name   string
		values []*tensor.Dense
		want   string
	}{
		{"too few", []*tensor.Dense{a}, "there are 2 inputs, got 1 values"},
		{"a vector for a column", []*tensor.Dense{vector64(1, 2), a}, `got float64 of shape (2)`},
		{"a vector for a scalar", []*tensor.Dense{tensor.New(tensor.WithShape(2, 1), tensor.Of(tensor.Float64)), vector64(1)}, `input "a" must be float64 of shape (), got float64 of shape (1)`},
		{"columns", []*tensor.Dense{tensor.New(tensor.WithShape(2, 1), tensor.AsFortran([]float64{1, 2})), a}, `input "x" must be stored by rows`},
		{"another dtype", []*tensor.Dense{tensor.New(tensor.WithShape(2, 1), tensor.Of(tensor.Float32)), a}, `got float32 of shape (2, 1)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Refuse(f.Call(c.values...))(t, "function: ", c.want)
		})
	}
}

// small returns a decoder as a Function of five ids.
func small(t testing.TB, p *layers.Params) *layers.Function {
	d := must.Get(layers.NewDecoder(p, layers.ModelConfig{
		Vocab: 20, Dim: 32, Layers: 2, Positions: layers.Rotary{}, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}},
	}))(t)
	return must.Get(layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		ids := G.NewVector(g, tensor.Int, G.WithName("ids"), G.WithShape(5))
		logits, err := d.Forward(b, ids, layers.Mask{})
		return G.Nodes{ids}, G.Nodes{logits}, err
	}))(t)
}

func fiveIDs(i int) *tensor.Dense {
	return tensor.New(tensor.WithBacking([]int{i % 20, (i + 3) % 20, 7, 2 * i % 20, 5}))
}

// TestFunctionServesGoroutines calls one Function from eight goroutines: each call gets its own answer.
func TestFunctionServesGoroutines(t *testing.T) {
	f := small(t, must.Get(layers.NewParams(tensor.Float32, 1))(t))
	const goroutines, calls = 8, 12
	values, want := make([]*tensor.Dense, calls), make([][]float64, calls)
	for i := range values {
		values[i] = fiveIDs(i)
		want[i] = floats(t, must.Get(f.Call(values[i]))(t)[0])
	}
	var wg sync.WaitGroup
	for k := range goroutines {
		wg.Go(func() {
			for i := range calls {
				i := (i + k) % calls // goroutines use the same values at the same time
				out, err := f.Call(values[i])
				if err != nil {
					t.Error(err)
					return
				}
				sameBits(t, fmt.Sprintf("call %d", i), floats(t, out[0]), want[i])
			}
		})
	}
	wg.Wait()
}

// TestFunctionsAreFreed makes and drops many Functions, and calls one Function often: memory use doesn't grow.
func TestFunctionsAreFreed(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	f := small(t, p)
	must.Get(f.Call(fiveIDs(1)))(t)
	before := memory.HeapInUse()
	const rounds, limit = 30, 1 << 20 // a graph takes about 100 kB
	for i := range rounds {
		p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
		must.Get(small(t, p).Call(fiveIDs(i)))(t)
		must.Get(f.Call(fiveIDs(i)))(t)
	}
	if grown := memory.HeapInUse() - before; grown > limit {
		t.Errorf("%d functions left %d bytes, want at most %d", rounds, grown, limit)
	}
}
