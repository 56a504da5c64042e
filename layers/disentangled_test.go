package layers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

// TestGradientsOfDisentangled checks the gradients of attention with every setting of the scheme, and of a model.
func TestGradientsOfDisentangled(t *testing.T) {
	var cases []gradientCase
	for name, tc := range map[string]struct {
		scheme layers.Disentangled
		config layers.AttentionConfig
		mask   layers.Mask
	}{
		"one row per distance": {layers.Disentangled{MaxDistance: 3}, layers.AttentionConfig{}, layers.Mask{}},
		"buckets":              {layers.Disentangled{Buckets: 4, MaxDistance: 5}, layers.AttentionConfig{}, layers.Mask{}},
		"only keys":            {layers.Disentangled{MaxDistance: 9, NoQueries: true}, layers.AttentionConfig{NoKeyBias: true}, layers.Mask{}},
		"only queries":         {layers.Disentangled{MaxDistance: 9, NoKeys: true}, layers.AttentionConfig{}, layers.Mask{Causal: true}},
		"own projections, norm": {layers.Disentangled{MaxDistance: 4, Norm: &layers.NormConfig{}},
			layers.AttentionConfig{DistanceKeys: true, DistanceQueries: true, NoKeyBias: true}, layers.Mask{}},
		"grouped heads": {layers.Disentangled{Buckets: 2, MaxDistance: 4}, layers.AttentionConfig{Heads: 4, KeyValueHeads: 2, Scale: 1, Softcap: 2}, layers.Mask{Window: &window{Left: 3, Right: 1}}},
	} {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
			if tc.config.Heads == 0 {
				tc.config.Heads = 2
			}
			a := c.multiHead(8, tc.config)
			a.Positions = must.Get(tc.scheme.New(c.p.Scope("positions"), 8, tc.config))(c)
			x := c.in("x", 2, 6, 8)
			return c.node(a.Forward(c.b, x, x, x, tc.mask))
		}})
	}
	cases = append(cases, gradientCase{"a model", func(c *bench) *G.Node {
		m := must.Get(layers.NewEncoder(c.p, layers.ModelConfig{Dim: 4, Layers: 2, Positions: layers.Disentangled{Buckets: 2, MaxDistance: 4},
			Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2, DistanceKeys: true}, FeedForward: layers.FeedForwardConfig{Hidden: 4}}}))(c)
		return c.node(m.Forward(c.b, c.in("x", 2, 5, 4), layers.Mask{KeyLengths: c.lengths(5, 3)}))
	}})
	checkGradients(t, cases)
}

// TestDistancesOfRandomOptions draws calls with random options and Distances. It compares the two forms and, without
// dropout, the derivative along a random direction.
func TestDistancesOfRandomOptions(t *testing.T) {
	drawRounds(t, 200, func(r *rand.Rand, what string) {
		call, l := drawCall(r, 40)
		if call.bias != nil {
			for i, x := range call.bias.Float64s() {
				call.bias.Float64s()[i] = max(x, -2) // finite differences need finite values
			}
		}
		if r.IntN(3) == 0 {
			call.options.Dropout = 0.3
		}
		d := layers.Distances{Buckets: 2 * r.IntN(5), MaxDistance: 12 + r.IntN(20)}
		rows, terms := 2*d.Buckets, 1+r.IntN(3)
		if d.Buckets == 0 {
			rows = 2 * d.MaxDistance
		}
		run := func(composed bool) [][]float64 {
			c := newBench(t)
			c.b.Composed, c.b.Seed = composed, 3
			q, k, v, o, wrt := call.build(c.g, l, c.p.Dtype())
			d := d
			if o.Mask.Distances = &d; terms&1 > 0 {
				d.Keys = input(c.g, "distances' keys", random(6, rows, call.G*call.K))
				wrt = append(wrt, d.Keys)
			}
			if terms&2 > 0 {
				d.Queries = input(c.g, "distances' queries", random(7, rows, call.H*call.K))
				wrt = append(wrt, d.Queries)
			}
			out := c.node(layers.ScaledDotProduct(c.b, q, k, v, o))
			cost := c.node(gradcheck.Project(out, 3))
			if call.options.Dropout == 0 { // otherwise each run drops other weights
				if err := (gradcheck.Config{Directional: true, Seed: r.Uint64()}).Expr(cost, wrt...); err != nil {
					t.Errorf("%s, %v, %v, %+v, composed %t: %v", what, call, l, d, composed, err)
				}
			}
			return read(t, append(G.Nodes{out}, gradients(t, cost, wrt...)...)...)
		}
		want, got := run(true), run(false)
		for i := range want {
			near(t, fmt.Sprintf("%s, %v, %v, %+v: output, or gradient %d", what, call, l, d, i), got[i], want[i], 1e-11)
		}
	})
}

// TestDistancesAreABias compares Distances with a bias of the same numbers.
func TestDistancesAreABias(t *testing.T) {
	const length, width, far = 7, 3, 4
	g := G.NewGraph()
	x, keys, queries := random(1, length, width), random(2, 2*far, width), random(3, 2*far, width)
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	bias := random(4, length, length)
	for i := range length {
		for j := range length {
			r := min(max(i-j+far, 0), 2*far-1) * width
			bias.Float64s()[i*length+j] = dot(x.Float64s()[i*width:][:width], keys.Float64s()[r:][:width]) + dot(x.Float64s()[j*width:][:width], queries.Float64s()[r:][:width])
		}
	}
	n := input(g, "x", x)
	attend := func(m layers.Mask) *G.Node {
		return must.Get(layers.ScaledDotProduct(&layers.Build{}, n, n, n, layers.AttentionOptions{Scale: 1, Mask: m}))(t)
	}
	out := read(t, attend(layers.Mask{Distances: &layers.Distances{Keys: input(g, "keys", keys), Queries: input(g, "queries", queries), MaxDistance: far}}),
		attend(layers.Mask{Bias: input(g, "bias", bias)}))
	near(t, "output", out[0], out[1], 1e-14)
}

// TestDistancesHide puts NaN into the vectors of distances that no query has to a key that it sees. They must change
// neither the output nor a gradient, and their own gradient must be 0.
func TestDistancesHide(t *testing.T) {
	const far = 8
	for _, composed := range []bool{false, true} {
		run := func(hidden float64) [][]float64 {
			c := newBench(t)
			c.b.Composed = composed
			vectors := func(seed uint64) *G.Node {
				v := random(seed, 2*far, 4)
				for r := range 2 * far {
					if r < far || r > far+5 { // keys after their query, and distances that are too long
						v.Float64s()[4*r] = hidden
					}
				}
				return input(c.g, fmt.Sprint("vectors", seed), v)
			}
			d := &layers.Distances{Keys: vectors(1), Queries: vectors(2), MaxDistance: far}
			x := c.in("x", 2, 6, 4)
			out := c.node(layers.ScaledDotProduct(c.b, x, x, x, layers.AttentionOptions{Heads: 2, Mask: layers.Mask{Causal: true, Distances: d}}))
			return read(t, append(G.Nodes{out}, gradients(t, c.node(gradcheck.Project(out, 1)), x, d.Keys, d.Queries)...)...)
		}
		want := run(0)
		for i, got := range run(math.NaN()) {
			near(t, fmt.Sprintf("composed %t: output, or gradient %d", composed, i), got, want[i], 1e-14)
		}
	}
}

func TestDisentangledErrors(t *testing.T) {
	made := func(d layers.Disentangled, dim int) error {
		_, err := d.New(newParams(t).Scope("p"), dim, layers.AttentionConfig{})
		return err
	}
	must.Fail(t, made(layers.Disentangled{Buckets: 7}, 4), "disentangled positions p", "even number", "got 7")
	must.Fail(t, made(layers.Disentangled{Buckets: -2}, 4), "disentangled positions p", "got -2")
	must.Fail(t, made(layers.Disentangled{Buckets: 8, MaxDistance: 5}, 4), "disentangled positions p", "MaxDistance must be from 6 to", "got 5")
	must.Fail(t, made(layers.Disentangled{MaxDistance: math.MaxInt}, 4), "disentangled positions p", "MaxDistance")
	must.Fail(t, made(layers.Disentangled{NoKeys: true, NoQueries: true}, 4), "disentangled positions p", "NoPositions")
	must.Fail(t, made(layers.Disentangled{Dropout: 1}, 4), "disentangled positions p", "got 1")
	must.Fail(t, made(layers.Disentangled{}, 0), "disentangled positions p", "Dim", "got 0")
	must.Fail(t, made(layers.Disentangled{Buckets: math.MaxInt - 1}, 4), "disentangled positions p", "MaxDistance")

	c := newBench(t)
	attention := c.multiHead(4, layers.AttentionConfig{})
	attention.Positions = must.Get(layers.Disentangled{MaxDistance: 3}.New(c.p.Scope("p"), 4, layers.AttentionConfig{}))(t)
	x := c.in("x", 3, 4)
	must.Refuse(attention.Forward(c.b, x, x, x, layers.Mask{Distances: &layers.Distances{}}))(t, "the mask can't have Distances, because the model sets them")
	attend := func(d layers.Distances) error {
		_, err := layers.ScaledDotProduct(c.b, x, x, x, layers.AttentionOptions{Mask: layers.Mask{Distances: &d}})
		return err
	}
	must.Fail(t, attend(layers.Distances{Keys: c.in("a", 3, 4), MaxDistance: 2}), "Distances.Keys must have shape (4, 4), got", "(3, 4)")
	must.Fail(t, attend(layers.Distances{Queries: c.in("b", 4, 3), MaxDistance: 2}), "Distances.Queries must have shape (4, 4), got", "(4, 3)")
	must.Fail(t, attend(layers.Distances{}), "MaxDistance must be from 2", "got 0")
	additive := must.Get(layers.NewAdditiveAttention(c.p.Scope("additive"), 4, layers.AdditiveConfig{}))(t)
	must.Refuse(additive.Forward(c.b, x, x, x, layers.Mask{Distances: &layers.Distances{}}))(t, "can't have Distances")
	must.Refuse(layers.NewMultiHeadAttention(c.p.Scope("tied"), 4, layers.AttentionConfig{TieQueryKey: true, NoKeyBias: true}))(t, "TieQueryKey", "NoKeyBias")
}
