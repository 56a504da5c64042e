package ops_test

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
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers/gradcheck"
)

// A routing is a drawn case of experts.
type routing struct {
	ops.Router
	tokens, dim, hidden int
	bias, gated, biased bool
	config              ops.ExpertsConfig
}

func drawRouting(r *rand.Rand) routing {
	c := routing{tokens: 1 + r.IntN(9), dim: 1 + r.IntN(4), hidden: 1 + r.IntN(5), bias: r.IntN(3) == 0, gated: r.IntN(2) == 0, biased: r.IntN(2) == 0}
	c.Router = ops.Router{Experts: 1 + r.IntN(7), Sigmoid: r.IntN(2) == 0, Normalize: r.IntN(2) == 0, Scale: 1 + float64(r.IntN(2))}
	c.Top = 1 + r.IntN(c.Experts)
	if c.Experts%2 == 0 && r.IntN(2) == 0 {
		c.Groups, c.TopGroups = c.Experts/2, c.Experts/2
		if c.TopGroups = (c.Top + 1) / 2; r.IntN(2) == 0 {
			c.TopGroups = c.Groups
		}
	}
	c.config = ops.ExpertsConfig{Name: "experts", Activation: ops.Activation(r.IntN(6))}
	if c.gated && r.IntN(3) == 0 {
		c.config.Activation, c.config.Limit = ops.SiLU, 0.3+r.Float64()
	}
	return c
}

// A routed has the nodes of a case.
type routed struct {
	x, logits, bias, ids, shares, y *G.Node
	wrt                             G.Nodes
}

func (c routing) build(g *graph, e *ops.Env) (n routed) {
	g.Helper()
	in := func(shape ...int) *G.Node {
		x := g.in(shape...)
		n.wrt = append(n.wrt, x)
		return x
	}
	n.x, n.logits = in(c.tokens, c.dim), in(c.tokens, c.Experts)
	if c.bias {
		n.bias = g.in(c.Experts)
	}
	n.ids = g.node(ops.Choose(e, n.logits, n.bias, c.Router))
	n.shares = g.node(ops.Share(e, n.logits, n.ids, c.Router))
	p := c.config
	p.Up, p.Down = in(c.Experts, c.hidden, c.dim), in(c.Experts, c.dim, c.hidden)
	if c.gated {
		p.Gate = in(c.Experts, c.hidden, c.dim)
	}
	if c.biased {
		p.UpBias, p.DownBias = in(c.Experts*c.hidden), in(c.Experts*c.dim)
		if c.gated {
			p.GateBias = in(c.Experts * c.hidden)
		}
	}
	n.y = g.node(ops.Experts(e, n.x, n.ids, n.shares, p))
	return n
}

// rounds calls do for drawn cases.
func rounds(t *testing.T, count int, do func(t *testing.T, c routing)) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 31))
	for i := range testseed.Cases(count) {
		c := drawRouting(r)
		t.Run(fmt.Sprintf("%d %+v", i, c), func(t *testing.T) { do(t, c) })
	}
}

// TestExpertsGradients compares gradients of experts, routers and the balance with finite differences.
func TestExpertsGradients(t *testing.T) {
	rounds(t, 60, func(t *testing.T, c routing) {
		g, e := newGraph(t), &ops.Env{}
		n := c.build(g, e)
		cost := G.Must(G.Add(g.node(gradcheck.Project(n.y, 1)), g.node(ops.Balance(e, n.logits, n.ids, c.Router))))
		must.Do(t, gradcheck.Expr(cost, n.wrt...))
	})
}

// TestExpertsAreFeedForwardLayers computes each token's experts one by one, with separate ops.
func TestExpertsAreFeedForwardLayers(t *testing.T) {
	rounds(t, 60, func(t *testing.T, c routing) {
		g, e := newGraph(t), &ops.Env{}
		n := c.build(g, e)
		var ids G.Value
		G.Read(n.ids, &ids)
		got := g.read(n.y, n.shares)
		want := make([]float64, len(got[0]))
		for token := range c.tokens {
			seen := map[int]bool{}
			for i := range c.Top {
				expert := ids.Data().([]int)[token*c.Top+i]
				if seen[expert] {
					t.Fatalf("expert %d is chosen twice", expert)
				}
				seen[expert] = true
				share := got[1][token*c.Top+i]
				for j, y := range c.expert(n, expert, token) {
					want[token*c.dim+j] += share * y
				}
			}
		}
		for i, x := range got[0] {
			if math.Abs(x-want[i]) > 1e-12*(1+math.Abs(want[i])) {
				t.Fatalf("element %d is %v, want %v", i, x, want[i])
			}
		}
	})
}

// expert computes the output of one expert for one token.
func (c routing) expert(n routed, expert, token int) []float64 {
	data := func(i int) []float64 { return n.wrt[i].Value().Data().([]float64) }
	x := data(0)[token*c.dim:][:c.dim]
	i, biases := 4, 4
	if c.gated {
		biases++
	}
	product := func(w, bias int, x []float64, out int) []float64 {
		y := make([]float64, out)
		for o := range y {
			for j, v := range x {
				y[o] += data(w)[(expert*out+o)*len(x)+j] * v
			}
			if c.biased {
				y[o] += data(bias)[expert*out+o]
			}
		}
		return y
	}
	up := product(2, biases, x, c.hidden)
	h := up
	if c.gated {
		h = product(i, biases+2, x, c.hidden)
	}
	hidden := make([]float64, c.hidden)
	for j := range h {
		switch v, limit := h[j], c.config.Limit; {
		case limit != 0:
			v = min(v, limit)
			hidden[j] = v / (1 + math.Exp(-1.702*v)) * (1 + max(-limit, min(up[j], limit)))
		default:
			hidden[j] = map[ops.Activation]func(float64) float64{
				ops.ReLU: func(v float64) float64 { return max(v, 0) }, ops.GELU: func(v float64) float64 { return v * (1 + math.Erf(v/math.Sqrt2)) / 2 },
				ops.GELUTanh: func(v float64) float64 { return v / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))) },
				ops.SiLU:     func(v float64) float64 { return v / (1 + math.Exp(-v)) }, ops.Tanh: math.Tanh,
				ops.Sigmoid: func(v float64) float64 { return 1 / (1 + math.Exp(-v)) },
			}[c.config.Activation](v)
			if c.gated {
				hidden[j] *= up[j]
			}
		}
	}
	return product(3, biases+1, hidden, c.dim)
}

// TestExpertsKeepNaN checks that a token with NaN, whose output no cost reads, changes neither the other outputs nor a
// gradient. The token chooses other experts than without NaN, so that their products have other sizes, and round
// differently.
func TestExpertsKeepNaN(t *testing.T) {
	rounds(t, 40, func(t *testing.T, c routing) {
		if c.tokens == 1 {
			c.tokens = 2
		}
		run := func(fill float64) [][]float64 {
			g, e := newGraph(t), &ops.Env{}
			n := c.build(g, e)
			for _, x := range []*G.Node{n.x, n.logits} {
				width := x.Shape()[1]
				for i := range width {
					x.Value().Data().([]float64)[width+i] = fill
				}
			}
			weights := make([]float64, c.tokens*c.dim)
			for i := range weights {
				if weights[i] = 1 + float64(i); i/c.dim == 1 {
					weights[i] = 0
				}
			}
			cost := g.node(ops.Sum(e, g.node(ops.Gate(e, g.input(tensor.New(tensor.WithShape(c.tokens, c.dim), tensor.WithBacking(weights))), n.y, ops.ReLU))))
			nodes := append(G.Nodes{n.y}, must.Get(G.Grad(cost, n.wrt...))(t)...)
			return g.read(nodes...)
		}
		want, got := run(0), run(math.NaN())
		clear(want[0][c.dim : 2*c.dim])
		clear(got[0][c.dim : 2*c.dim])
		for i := range want {
			for j, x := range got[i] {
				if !(math.Abs(x-want[i][j]) <= 1e-12*(1+math.Abs(want[i][j]))) {
					t.Fatalf("element %d of result %d is %v, want %v", j, i, x, want[i][j])
				}
			}
		}
	})
}

// TestExpertsOnCores compares the bits of results for several numbers of cores, and with dropout.
func TestExpertsOnCores(t *testing.T) {
	for _, training := range []bool{false, true} {
		var want [][]float64
		for _, cores := range []int{1, 2, 7} {
			c := routing{Router: ops.Router{Experts: 5, Top: 2, Normalize: true, Scale: 1}, tokens: 300, dim: 40, hidden: 70, gated: true, biased: true}
			c.config = ops.ExpertsConfig{Name: "experts", Activation: ops.SiLU, Dropout: 0.2}
			g, e := newGraph(t), &ops.Env{Cores: cores, Training: training, Seed: 3}
			n := c.build(g, e)
			cost := g.node(gradcheck.Project(n.y, 1))
			got := g.read(append(G.Nodes{n.y}, must.Get(G.Grad(cost, n.wrt...))(t)...)...)
			if want == nil {
				want = got
			}
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("training %t: result %d differs on %d cores", training, i, cores)
				}
			}
		}
	}
}

// TestChoose checks choices: with a bias, with groups, among equal logits and with NaN.
func TestChoose(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		r            ops.Router
		logits, bias []float64
		want         []int
	}{
		{ops.Router{Experts: 4, Top: 2}, []float64{1, 3, 2, 0}, nil, []int{1, 2}},
		{ops.Router{Experts: 4, Top: 2}, []float64{1, 1, 1, 1}, nil, []int{0, 1}},
		{ops.Router{Experts: 4, Top: 2, Sigmoid: true}, []float64{1, nan, 2, nan}, nil, []int{2, 0}},
		{ops.Router{Experts: 4, Top: 3, Sigmoid: true}, []float64{1, nan, 2, nan}, nil, []int{2, 0, 1}},
		{ops.Router{Experts: 4, Top: 2, Sigmoid: true}, []float64{0, 0, 0, 0}, []float64{0, 0.1, 0, 0.2}, []int{3, 1}},
		{ops.Router{Experts: 4, Top: 2, Groups: 2, TopGroups: 1}, []float64{9, -9, 8, 7}, nil, []int{0, 1}},
		{ops.Router{Experts: 4, Top: 2, Groups: 2, TopGroups: 1, Sigmoid: true}, []float64{9, -9, 8, 7}, nil, []int{2, 3}},
	} {
		g := newGraph(t)
		var bias *G.Node
		if tc.bias != nil {
			bias = g.input(tensor.New(tensor.WithShape(4), tensor.WithBacking(tc.bias)))
		}
		n := g.node(ops.Choose(&ops.Env{}, g.input(tensor.New(tensor.WithShape(1, 4), tensor.WithBacking(tc.logits))), bias, tc.r))
		var got G.Value
		G.Read(n, &got)
		g.read()
		if !slices.Equal(got.Data().([]int), tc.want) {
			t.Errorf("%+v: chose %v, want %v", tc, got, tc.want)
		}
	}
}

// TestExpertsDropout compares gradients in training with differences between first runs of graphs, which drop the same
// hidden units.
func TestExpertsDropout(t *testing.T) {
	rounds(t, 10, func(t *testing.T, c routing) {
		c.config.Dropout, c.config.Activation, c.config.Limit = 0.4, ops.Tanh, 0
		run := func(input, element int, by float64) (cost float64, gradient []float64) {
			g, e := newGraph(t), &ops.Env{Training: true, Seed: 5}
			n := c.build(g, e)
			n.wrt[input].Value().Data().([]float64)[element] += by
			out := g.node(gradcheck.Project(n.y, 1))
			got := g.read(append(G.Nodes{out}, must.Get(G.Grad(out, n.wrt[input]))(t)...)...)
			return got[0][0], got[1]
		}
		for input := range 4 {
			_, gradient := run(input, 0, 0)
			for element := 0; element < len(gradient); element += 3 {
				const step = 1e-6
				more, _ := run(input, element, step)
				less, _ := run(input, element, -step)
				if d := (more - less) / (2 * step); math.Abs(d-gradient[element]) > 1e-6*(1+math.Abs(d)) {
					t.Fatalf("gradient of element %d of input %d is %v, want %v", element, input, gradient[element], d)
				}
			}
		}
	})
}
