package layers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// An onnxLayout is the layout of the queries, keys and values of a call.
type onnxLayout int

const (
	onnxHeads   onnxLayout = iota // (B, H, T, K): the operator's layout of rank 4
	onnxSide                      // (B, T, H·K): the operator's layout of rank 3
	onnxSideOne                   // (T, H·K) with B = 1
	onnxBatch                     // (B, T, K) with H = 1
	onnxMatrix                    // (T, K) with B = H = 1
)

func (l onnxLayout) String() string {
	return []string{"(B, H, T, K)", "(B, T, H·K)", "(T, H·K)", "(B, T, K)", "(T, K)"}[l]
}

// lay converts x, of shape (B, heads, length, width), to the layout.
func (l onnxLayout) lay(x []float64, b, heads, length, width int) *tensor.Dense {
	switch l {
	case onnxSide:
		return dense(onnxSwap(x, b, heads, length, width), b, length, heads*width)
	case onnxSideOne:
		return dense(onnxSwap(x, b, heads, length, width), length, heads*width)
	case onnxBatch:
		return dense(slices.Clone(x), b, length, width)
	case onnxMatrix:
		return dense(slices.Clone(x), length, width)
	}
	return dense(slices.Clone(x), b, heads, length, width)
}

// unlay is the inverse of lay.
func (l onnxLayout) unlay(x []float64, b, heads, length, width int) []float64 {
	if l == onnxSide || l == onnxSideOne {
		return onnxSwap(x, b, length, heads, width)
	}
	return x
}

// onnxSwap transposes (n, a, b, width) to (n, b, a, width).
func onnxSwap(x []float64, n, a, b, width int) []float64 {
	out := make([]float64, len(x))
	for i := range n * a * b {
		row, col := i/b%a, i%b
		copy(out[((i/(a*b)*b+col)*a+row)*width:], x[i*width:][:width])
	}
	return out
}

// mask converts a mask's shape for scores (B, H, T, S) to a shape for the layout's scores, which may lack axes B and H.
func (l onnxLayout) mask(shape tensor.Shape) tensor.Shape {
	switch {
	case l == onnxBatch && len(shape) == 4:
		return tensor.Shape{shape[0], shape[2], shape[3]}
	case l == onnxMatrix && len(shape) > 2:
		return shape[len(shape)-2:]
	}
	return shape
}

// fill fills the call's tensors with random numbers.
func (c *onnxCall) fill(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 11))
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 0.7 * r.NormFloat64()
		}
		return x
	}
	c.q, c.k, c.v = draw(c.B*c.H*c.T*c.K), draw(c.B*c.G*c.S*c.K), draw(c.B*c.G*c.S*c.V)
	c.pastKey, c.pastValue = draw(c.B*c.G*c.P*c.K), draw(c.B*c.G*c.P*c.V)
}

// build adds the operands of a call to a graph. The nodes in wrt are the operands with a gradient.
func (c *onnxCall) build(g *G.ExprGraph, l onnxLayout, dt tensor.Dtype) (q, k, v *G.Node, o layers.AttentionOptions, wrt G.Nodes) {
	operand := func(name string) *G.Node {
		n := input(g, name, c.value(name, l, dt))
		wrt = append(wrt, n)
		return n
	}
	q, k, v = operand("q"), operand("k"), operand("v")
	o = c.options
	if c.P > 0 {
		o.PastKey, o.PastValue = operand("past key"), operand("past value")
	}
	if l == onnxSide || l == onnxSideOne {
		o.Heads, o.KeyValueHeads = c.H, c.G
	}
	m, bias := c.mask(g, l, dt)
	o.Mask = m
	return q, k, v, o, append(wrt, bias...)
}

// mask adds the mask of a call to a graph. The result bias holds the mask's bias, if the mask has one.
func (c *onnxCall) mask(g *G.ExprGraph, l onnxLayout, dt tensor.Dtype) (m layers.Mask, bias G.Nodes) {
	m = c.options.Mask
	if c.lengths != nil {
		m.KeyLengths = input(g, "lengths", dense(c.lengths, c.B))
	}
	if c.offsets != nil {
		m.Offsets = input(g, "offsets", dense(c.offsets, c.B))
	}
	if c.documents != nil {
		m.Documents = input(g, "documents", dense(c.documents, c.B, c.keys()))
	}
	if c.blocks != nil {
		var err error
		if m.Blocks, err = layers.NewBlockMask(c.positions(), c.keys(), c.blocks); err != nil {
			panic(err)
		}
	}
	if c.allow != nil {
		m.Allow = input(g, "allow", dense(c.allow.Bools(), l.mask(c.allow.Shape())...))
	}
	if c.bias != nil {
		m.Bias = input(g, "bias", c.value("bias", l, dt))
		bias = G.Nodes{m.Bias}
	}
	return m, bias
}

// value returns the tensor of the operand with the given name, or of the bias.
func (c *onnxCall) value(name string, l onnxLayout, dt tensor.Dtype) *tensor.Dense {
	if name == "bias" {
		return as(dt, dense(slices.Clone(c.bias.Float64s()), l.mask(c.bias.Shape())...))
	}
	s := c.operands()[name]
	return as(dt, l.lay(s.values, c.B, s.heads, s.length, s.width))
}

// run computes the outputs of a call and the gradients of Σ g·output with the library. In the composed form, it also
// returns the stages.
func (c *onnxCall) run(t testing.TB, l onnxLayout, dt tensor.Dtype, b layers.Build, g []float64) onnxResults {
	t.Helper()
	return c.runner(t, l, dt, b, g)(c)
}

// runner builds the graph of a call. The returned function runs the graph for this call, or for a call that differs
// only in its operands' values.
func (c *onnxCall) runner(t testing.TB, l onnxLayout, dt tensor.Dtype, b layers.Build, g []float64) func(c *onnxCall) onnxResults {
	t.Helper()
	graph := G.NewGraph()
	q, k, v, o, wrt := c.build(graph, l, dt)
	var st layers.Stages
	var err error
	if b.Composed {
		st, err = layers.ScaledDotProductStages(&b, q, k, v, o)
	} else {
		st.Output, err = layers.ScaledDotProduct(&b, q, k, v, o)
	}
	must.Do(t, err)
	w := input(graph, "w", as(dt, l.lay(g, c.B, c.H, c.T, c.V)))
	cost := must.Get(ops.Sum(&ops.Env{}, must.Get(G.HadamardProd(st.Output, w))(t)))(t)
	nodes := append(G.Nodes{st.Output}, gradients(t, cost, wrt...)...)
	if b.Composed {
		nodes = append(nodes, st.Key, st.Value, st.Scores, st.Capped, st.Masked, st.Weights, st.Dropped)
	}
	again := runner(t, nodes...)
	return func(c *onnxCall) onnxResults {
		t.Helper()
		for _, n := range wrt {
			must.Do(t, G.Let(n, c.value(n.Name(), l, dt)))
		}
		got := must.Get(again())(t)
		r := onnxResults{output: l.unlay(got[0], c.B, c.H, c.T, c.V), grads: map[string][]float64{}}
		for i, n := range wrt {
			r.grads[n.Name()] = got[1+i]
		}
		for name, s := range c.operands() {
			if x := r.grads[name]; x != nil {
				r.grads[name] = l.unlay(x, c.B, s.heads, s.length, s.width)
			}
		}
		if b.Composed {
			st := got[1+len(wrt):]
			r.stages = map[string][]float64{
				"key": l.unlay(st[0], c.B, c.G, c.keys(), c.K), "value": l.unlay(st[1], c.B, c.G, c.keys(), c.V),
				"scores": st[2], "capped": st[3], "masked": st[4], "weights": st[5], "dropped": st[6],
			}
		}
		return r
	}
}

// An onnxOperand holds the values of an operand, (B, heads, length, width).
type onnxOperand struct {
	values               []float64
	heads, length, width int
}

func (c *onnxCall) operands() map[string]onnxOperand {
	return map[string]onnxOperand{
		"q": {c.q, c.H, c.T, c.K}, "k": {c.k, c.G, c.S, c.K}, "v": {c.v, c.G, c.S, c.V},
		"past key": {c.pastKey, c.G, c.P, c.K}, "past value": {c.pastValue, c.G, c.P, c.V},
	}
}

// gradient returns the gradient of the cost with respect to the outputs.
func (c *onnxCall) gradient() []float64 { return random(8, c.B*c.H*c.T*c.V).Float64s() }

// agree compares got with r: the outputs, the gradients that got has, and the stages that both have.
func (r onnxResults) agree(t testing.TB, what string, got onnxResults, tol float64) {
	t.Helper()
	near(t, what+": output", got.output, r.output, tol)
	for name, x := range got.grads {
		near(t, what+": gradient of "+name, x, r.grads[name], tol)
	}
	for name, x := range r.stages {
		if y := got.stages[name]; y != nil {
			x, y = onnxFinite(t, what+": "+name, x, y)
			near(t, what+": "+name, y, x, tol)
		}
	}
}

// onnxFinite returns copies of both slices in which infinite elements are 0. It reports an error if an element is
// infinite in one slice and has another value in the other.
func onnxFinite(t testing.TB, what string, want, got []float64) (w, g []float64) {
	t.Helper()
	w, g = slices.Clone(want), slices.Clone(got)
	for i := range min(len(w), len(g)) {
		if !math.IsInf(w[i], 0) && !math.IsInf(g[i], 0) {
			continue
		}
		if w[i] != g[i] {
			t.Errorf("%s: element %d is %v, want %v", what, i, g[i], w[i])
		}
		w[i], g[i] = 0, 0
	}
	return w, g
}

// hidden marks the hidden elements of each operand, the bias and the output. An element is hidden if no query sees it,
// or if it belongs to a query that sees no key.
func (c *onnxCall) hidden() map[string][]bool {
	query, key := make([]bool, c.B*c.H*c.T), make([]bool, c.B*c.G*c.keys())
	hidden := map[string][]bool{}
	if c.bias != nil {
		hidden["bias"] = slices.Repeat([]bool{true}, len(c.bias.Float64s()))
	}
	for _, x := range [][]bool{query, key} {
		for i := range x {
			x[i] = true
		}
	}
	for row := range query {
		b, h, t := row/c.T/c.H, row/c.T%c.H, row%c.T
		for j := range c.keys() {
			if !c.sees(b, h, t, j) {
				continue
			}
			query[row], key[(b*c.G+h*c.G/c.H)*c.keys()+j] = false, false
			if c.bias != nil {
				hidden["bias"][onnxEntry(c.bias.Shape(), b, h, t, j)] = false
			}
		}
	}
	wide := func(x []bool, width int) (out []bool) {
		for _, h := range x {
			out = append(out, slices.Repeat([]bool{h}, width)...)
		}
		return out
	}
	hidden["q"], hidden["output"] = wide(query, c.K), wide(query, c.V)
	for head := range slices.Chunk(key, c.keys()) {
		hidden["past key"] = append(hidden["past key"], wide(head[:c.P], c.K)...)
		hidden["past value"] = append(hidden["past value"], wide(head[:c.P], c.V)...)
		hidden["k"] = append(hidden["k"], wide(head[c.P:], c.K)...)
		hidden["v"] = append(hidden["v"], wide(head[c.P:], c.V)...)
	}
	return hidden
}

// with returns a copy of the call whose hidden elements have the value fill. Bias elements of −Inf stay, because they
// mask keys.
func (c *onnxCall) with(fill float64, hidden map[string][]bool) *onnxCall {
	p := *c
	put := func(name string, x []float64) []float64 {
		x = slices.Clone(x)
		for i, h := range hidden[name] {
			if h && x[i] != -inf {
				x[i] = fill
			}
		}
		return x
	}
	p.q, p.k, p.v = put("q", c.q), put("k", c.k), put("v", c.v)
	p.pastKey, p.pastValue = put("past key", c.pastKey), put("past value", c.pastValue)
	if c.bias != nil {
		p.bias = dense(put("bias", c.bias.Float64s()), c.bias.Shape()...)
	}
	return &p
}

// check compares all values and gradients of a call in one layout with the expected numbers. Gradients of hidden
// elements must be exactly zero. check then sets the hidden elements to each number in fills: no bit of the results may
// change.
func (c *onnxCall) check(t *testing.T, what string, l onnxLayout, dt tensor.Dtype, fills ...float64) {
	t.Helper()
	g, hidden := c.gradient(), c.hidden()
	want := c.expect(g)
	for _, composed := range []bool{false, true} {
		what := fmt.Sprintf("%s, %v of %v, composed %t", what, l, dt, composed)
		run := c.runner(t, l, dt, layers.Build{Composed: composed}, g)
		got := run(c)
		want.agree(t, what, got, formTolerance(dt))
		onnxZero(t, what+": output", got.output, hidden["output"])
		for name, x := range got.grads {
			onnxZero(t, what+": gradient of "+name, x, hidden[name])
		}
		for _, fill := range fills {
			other := run(c.with(fill, hidden))
			what := fmt.Sprintf("%s, with %v in hidden elements", what, fill)
			sameBits(t, what+": output", other.output, got.output)
			for name, x := range other.grads {
				sameBits(t, what+": gradient of "+name, x, got.grads[name])
			}
		}
	}
}

// onnxZero reports an error for a hidden element that isn't 0.
func onnxZero(t testing.TB, what string, x []float64, hidden []bool) {
	t.Helper()
	for i, h := range hidden {
		if h && x[i] != 0 {
			t.Errorf("%s: hidden element %d is %v, want 0", what, i, x[i])
			return
		}
	}
}

var onnxFills = []float64{math.NaN(), inf, -inf}
