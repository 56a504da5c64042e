package layers_test

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
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

func (c *bench) additive(dim int, config layers.AdditiveConfig) *layers.AdditiveAttention {
	c.Helper()
	return must.Get(layers.NewAdditiveAttention(c.p, dim, config))(c)
}

func additiveSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	width := func(x array) int { return x.Shape[len(x.Shape)-1] }
	scale, scaled := f.Params["scale.weight"]
	query, projected := f.Params["query.weight"]
	c := layers.AdditiveConfig{KeyInput: width(f.Inputs["key"]), NoProjections: !projected, NoScale: !scaled}
	switch {
	case scaled:
		c.Hidden = width(scale)
	case projected:
		c.Hidden = query.Shape[0]
	}
	a := must.Get(layers.NewAdditiveAttention(p, width(f.Inputs["query"]), c))(t)
	f.fill(t, p)
	out, weights, err := forwardWeights(a, b, inputs["query"], inputs["key"], inputs["value"], f.mask(inputs))
	must.Do(t, err)
	for name, n := range map[string]*G.Node{"out": out, "weights": weights} {
		if want := tensor.Shape(f.Outputs[name].Shape); !n.Shape().Eq(want) {
			t.Errorf("%s has shape %v, want %v", name, n.Shape(), want)
		}
	}
	return map[string]*G.Node{"out": out, "weights": weights}
}

func TestGradientsOfAdditiveAttention(t *testing.T) {
	unmasked := func(*bench) layers.Mask { return layers.Mask{} }
	var cases []gradientCase
	add := func(name string, config layers.AdditiveConfig, q, k, v []int, mask func(c *bench) layers.Mask) {
		cases = append(cases, gradientCase{name, func(c *bench) *G.Node {
			out, weights, err := forwardWeights(c.additive(4, config), c.b, c.in("q", q...), c.in("k", k...), c.in("v", v...), mask(c))
			must.Do(c, err)
			// The cost includes the weights too, to check gradients through both outputs.
			return c.node(G.Add(c.node(gradcheck.Project(out, 1)), c.node(gradcheck.Project(weights, 2))))
		}})
	}
	for name, config := range map[string]layers.AdditiveConfig{
		"the paper's":       {},
		"hidden":            {Hidden: 6},
		"no scale":          {Hidden: 3, NoScale: true},
		"Keras's":           {NoProjections: true},
		"Keras's, no scale": {NoProjections: true, NoScale: true},
	} {
		add(name, config, []int{2, 3, 4}, []int{2, 5, 4}, []int{2, 5, 2}, unmasked)
		add(name+", no batch", config, []int{3, 4}, []int{5, 4}, []int{5, 2}, unmasked)
	}
	add("widths", layers.AdditiveConfig{KeyInput: 3, Hidden: 2}, []int{2, 3, 4}, []int{2, 5, 3}, []int{2, 5, 6}, unmasked)
	for name, mask := range map[string]func(c *bench) layers.Mask{
		"causal":  func(*bench) layers.Mask { return layers.Mask{Causal: true} },
		"lengths": func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(0, 3)} },
		"allow":   func(c *bench) layers.Mask { return layers.Mask{Allow: c.allow([]int{1}, 3, 5)} },
		"bias":    func(c *bench) layers.Mask { return layers.Mask{Bias: c.bias(2, 1, 1, 5)} },
		"all": func(c *bench) layers.Mask {
			return layers.Mask{
				Causal: true, Window: &layers.Window{Left: 2, Right: -1}, Offsets: c.ints("offsets", []int{2, 1}, 2),
				KeyLengths: c.lengths(5, 4), Allow: c.allow(nil, 2, 1, 3, 5), Bias: c.bias(3, 4), Slopes: []float64{0.5},
			}
		},
	} {
		add(name, layers.AdditiveConfig{}, []int{2, 3, 4}, []int{2, 5, 4}, []int{2, 5, 2}, mask)
	}
	checkGradients(t, cases)
}

// TestAdditiveMasksMeanTheSame compares the layer with scaled dot-product attention, under random masks and dropout.
// The other attention gets the layer's scores as queries and unit vectors as keys. So its dot products are the layer's
// scores.
func TestAdditiveMasksMeanTheSame(t *testing.T) {
	drawRounds(t, 50, func(r *rand.Rand, what string) {
		call := &onnxCall{onnxSizes: onnxSizes{B: 1 + r.IntN(3), H: 1, G: 1, T: 1 + r.IntN(9), S: 1 + r.IntN(9)}}
		batch, queries, keys, width, value := call.B, call.T, call.S, 1+r.IntN(6), 1+r.IntN(4)
		call.drawMask(r)
		dt := []tensor.Dtype{tensor.Float64, tensor.Float32}[r.IntN(2)]
		dropout := 0.3 * float64(r.IntN(2))
		run := func(additive bool) ([][]float64, G.Nodes) {
			g := G.NewGraph()
			b := &layers.Build{Training: true}
			p := must.Get(layers.NewParams(dt, 1))(t)
			a := must.Get(layers.NewAdditiveAttention(p, width, layers.AdditiveConfig{NoProjections: true, Dropout: dropout}))(t)
			q, k, v := input(g, "q", as(dt, random(1, batch, queries, width))), input(g, "k", as(dt, random(2, batch, keys, width))), input(g, "v", as(dt, random(3, batch, keys, value)))
			m, wrt := call.mask(g, onnxSide, dt)
			var out *G.Node
			if additive {
				out = must.Get(a.Forward(b, q, k, v, m))(t)
			} else {
				units := make([]float64, batch*keys*keys)
				for i := range units {
					if i/keys%keys == i%keys {
						units[i] = 1
					}
				}
				scores := must.Get(ops.AdditiveScores(&ops.Env{}, q, k, must.Get(b.Bind(g, a.Scale))(t)))(t) // (B, T, S)
				out = must.Get(layers.ScaledDotProduct(b, scores, input(g, "units", as(dt, dense(units, batch, keys, keys))), v, layers.AttentionOptions{Heads: 1, Scale: 1, Mask: m, Dropout: dropout}))(t)
			}
			wrt = append(append(wrt, q, k, v), b.Learnables()...)
			cost := weigh(t, out, input(g, "w", as(dt, random(8, batch, queries, value))))
			return read(t, append(G.Nodes{out}, gradients(t, cost, wrt...)...)...), wrt
		}
		want, wrt := run(false)
		got, _ := run(true)
		for i := range want {
			near(t, fmt.Sprintf("%s: %v, dropout %v, %v: output, or gradient %d of %v", what, dt, dropout, call, i, wrt), got[i], want[i], formTolerance(dt))
		}
	})
}

// TestAdditiveHidesMaskedInputs changes masked inputs: future tokens, padding, keys and values. The new values include
// NaN and infinity. Outputs and gradients must not change.
func TestAdditiveHidesMaskedInputs(t *testing.T) {
	var cases []hidingCase
	for name, config := range map[string]layers.AdditiveConfig{
		"the paper's": {Hidden: 5}, "Keras's": {NoProjections: true}, "no scale": {NoProjections: true, NoScale: true}, "dropout": {Dropout: 0.3},
	} {
		self := func(m func(c *bench) layers.Mask) func(c *bench, x *G.Node) *G.Node {
			return func(c *bench, x *G.Node) *G.Node { return c.node(c.additive(8, config).Forward(c.b, x, x, x, m(c))) }
		}
		cases = append(cases, hidingCase{
			name: "future, " + name, shape: []int{2, 7, 8}, hidden: from(4), build: self(func(*bench) layers.Mask { return layers.Mask{Causal: true} }),
		}, hidingCase{
			name: "future and more, " + name, shape: []int{2, 7, 8}, hidden: from(4), selected: func(_, i int) bool { return i < 3 },
			build: self(func(c *bench) layers.Mask {
				return layers.Mask{
					Causal: true, Window: &layers.Window{Left: 3, Right: 2}, Slopes: []float64{0.5}, Offsets: c.ints("offsets", []int{1, 0}, 2),
					KeyLengths: c.lengths(7, 6), Allow: c.allow([]int{1}, 7, 7), Bias: c.biasBefore(7, 7, 6),
				}
			}),
		}, hidingCase{
			name: "future of many, " + name, shape: []int{2, 70, 8}, hidden: from(33), build: self(func(*bench) layers.Mask { return layers.Mask{Causal: true} }),
		})
		for mask, m := range map[string]func(c *bench) layers.Mask{
			"lengths": func(c *bench) layers.Mask { return layers.Mask{KeyLengths: c.lengths(5, 3)} },
			"allow":   func(c *bench) layers.Mask { return layers.Mask{Allow: c.allowBefore(6, 5, 3)} },
			"bias":    func(c *bench) layers.Mask { return layers.Mask{Bias: c.biasBefore(6, 5, 3)} },
		} {
			cases = append(cases, hidingCase{name: "padding by " + mask + ", " + name, shape: []int{2, 6, 8}, hidden: past(5, 3), build: self(m)})
			for _, part := range []string{"keys", "values"} {
				cases = append(cases, hidingCase{
					name: part + " by " + mask + ", " + name, shape: []int{2, 6, 8}, hidden: past(5, 3), selected: everything,
					build: func(c *bench, x *G.Node) *G.Node {
						k, v := x, c.in("other", 2, 6, 8)
						if part == "values" {
							k, v = v, x
						}
						return c.node(c.additive(8, config).Forward(c.b, c.in("query", 2, 4, 8), k, v, m(c)))
					},
				})
			}
		}
		// The second sequence has no key at all.
		cases = append(cases, hidingCase{
			name: "no keys, " + name, shape: []int{2, 6, 8}, hidden: past(5, 0), selected: everything, build: func(c *bench, x *G.Node) *G.Node {
				return c.node(c.additive(8, config).Forward(c.b, c.in("query", 2, 4, 8), x, x, layers.Mask{KeyLengths: c.lengths(5, 0)}))
			},
		}, hidingCase{
			name: "queries without keys, " + name, shape: []int{2, 6, 8}, hidden: past(6, 0), build: func(c *bench, x *G.Node) *G.Node {
				key := c.in("key", 2, 4, 8)
				return c.node(c.additive(8, config).Forward(c.b, x, key, key, layers.Mask{KeyLengths: c.lengths(4, 0)}))
			},
		})
	}
	hide(t, cases)
}

// TestAdditiveCapture checks captured weights, with and without dropout.
func TestAdditiveCapture(t *testing.T) {
	for _, shape := range [][]int{{2, 3, 4}, {3, 4}} {
		c := newBench(t)
		c.b.CaptureWeights = true
		x, y := c.in("x", shape...), c.in("y", shape...)
		a := must.Get(layers.NewAdditiveAttention(c.p.Scope("decoder").Scope("attention"), 4, layers.AdditiveConfig{Dropout: 0.5}))(t)
		out, weights, err := forwardWeights(a, c.b, x, y, y, layers.Mask{})
		must.Do(t, err)
		captured := c.b.AttentionWeights()
		batch := tensor.Shape(shape).TotalSize() / 12
		if len(captured) != 1 || captured[0].Layer != "decoder.attention" || captured[0].Weights != weights || !weights.Shape().Eq(tensor.Shape{batch, 1, 3, 3}) {
			t.Fatalf("captured %v, want only the weights %v of decoder.attention", captured, weights)
		}
		got := read(t, out, weights)
		values := floats(t, y.Value())
		want := make([]float64, len(got[0]))
		for i := range want {
			b, row, col := i/12, i/4, i%4
			for j := range 3 {
				want[i] += got[1][row*3+j] * values[(b*3+j)*4+col]
			}
		}
		near(t, "weights times values", got[0], want, 1e-14)
		if !slices.Contains(got[1], 0) {
			t.Errorf("the weights after dropout are %v, want some zeros", got[1])
		}
	}
}

// TestAdditiveKeepsNoHidden checks that no node stores the hidden units: none has more elements than the largest input.
func TestAdditiveKeepsNoHidden(t *testing.T) {
	c := newBench(t)
	y := c.node(c.additive(8, layers.AdditiveConfig{}).Forward(c.b, c.in("x", 2, 7, 8), c.in("y", 2, 11, 8), c.in("z", 2, 11, 8), layers.Mask{}))
	gradients(t, weigh(t, y, input(c.g, "w", random(1, 2, 7, 8))), append(c.wrt, c.b.Learnables()...)...)
	for _, n := range c.g.AllNodes() {
		if n.Shape().TotalSize() > 2*11*8 {
			t.Errorf("%v has shape %v, want at most %d elements", n, n.Shape(), 2*11*8)
		}
	}
}

// TestAdditiveErrors makes invalid layers, and applies layers to invalid inputs. Each error names the layer, the
// expected and the actual value.
func TestAdditiveErrors(t *testing.T) {
	type config = layers.AdditiveConfig
	type mask = layers.Mask
	for name, tc := range map[string]struct {
		config config
		build  func(c *bench, a *layers.AdditiveAttention) (*G.Node, error)
		want   []string
	}{
		"dropout of 1":              {config{Dropout: 1}, nil, []string{"dropout", "below 1", "got 1"}},
		"dropout NaN":               {config{Dropout: math.NaN()}, nil, []string{"dropout", "NaN"}},
		"no projections, KeyInput":  {config{NoProjections: true, KeyInput: 5}, nil, []string{"NoProjections", "width, 4", "got 5 and 4"}},
		"no projections and Hidden": {config{NoProjections: true, Hidden: 6}, nil, []string{"NoProjections", "width, 4", "got 4 and 6"}},

		"query's width": {config{}, applied([]int{2, 3, 5}, []int{2, 6, 4}, []int{2, 6, 4}), []string{"query", "(…, 4)", "(2, 3, 5)"}},
		"key's width":   {config{KeyInput: 7}, applied([]int{2, 3, 4}, []int{2, 6, 4}, []int{2, 6, 4}), []string{"key", "(…, 7)", "(2, 6, 4)"}},
		"query's rank":  {config{}, applied([]int{2, 1, 3, 4}, []int{2, 6, 4}, []int{2, 6, 4}), []string{"query", "(T, 4) or (B, T, 4)", "(2, 1, 3, 4)"}},
		"key's rank":    {config{}, applied([]int{2, 3, 4}, []int{6, 4}, []int{2, 6, 4}), []string{"query, key and value", "(2, 3, 4), (6, 4) and (2, 6, 4)"}},
		"value's rank":  {config{}, applied([]int{2, 3, 4}, []int{2, 6, 4}, []int{6}), []string{"query, key and value", "(2, 6, 4) and (6)"}},
		"query's dtype": {config{}, func(c *bench, a *layers.AdditiveAttention) (*G.Node, error) {
			return a.Forward(c.b, input(c.g, "f32", as(tensor.Float32, random(1, 3, 4))), c.in("k", 3, 4), c.in("v", 3, 4), mask{})
		}, []string{"query", "float64", "float32"}},
		"value's dtype": {config{}, func(c *bench, a *layers.AdditiveAttention) (*G.Node, error) {
			return a.Forward(c.b, c.in("q", 3, 4), c.in("k", 3, 4), c.ints("v", make([]int, 12), 3, 4), mask{})
		}, []string{"value", "float64", "int"}},
		"another graph": {config{}, func(c *bench, a *layers.AdditiveAttention) (*G.Node, error) {
			x := c.in("x", 3, 4)
			return a.Forward(c.b, x, x, input(G.NewGraph(), "v", random(1, 3, 4)), mask{})
		}, []string{"another graph"}},
		"slopes of two heads": {config{}, func(c *bench, a *layers.AdditiveAttention) (*G.Node, error) {
			x := c.in("x", 3, 4)
			return a.Forward(c.b, x, x, x, mask{Slopes: []float64{1, 2}})
		}, []string{"Mask.Slopes", "1 heads", "got 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBench(t)
			a, err := layers.NewAdditiveAttention(c.p.Scope("align"), 4, tc.config)
			if tc.build != nil {
				must.Do(t, err)
				_, err = tc.build(c, a)
			}
			must.Fail(t, err, append([]string{"additive attention align"}, tc.want...)...)
		})
	}
}

// applied returns a function that applies a layer to inputs of the given shapes.
func applied(q, k, v []int) func(c *bench, a *layers.AdditiveAttention) (*G.Node, error) {
	return func(c *bench, a *layers.AdditiveAttention) (*G.Node, error) {
		return a.Forward(c.b, c.in("q", q...), c.in("k", k...), c.in("v", v...), layers.Mask{})
	}
}

// TestAdditiveParameters checks the parameters' names, shapes and initial values for each configuration.
func TestAdditiveParameters(t *testing.T) {
	for _, tc := range []struct {
		config layers.AdditiveConfig
		want   string
	}{
		{layers.AdditiveConfig{KeyInput: 3, Hidden: 5}, "query.weight(5, 4) key.weight(5, 3) scale.weight(5)"},
		{layers.AdditiveConfig{NoScale: true}, "query.weight(4, 4) key.weight(4, 4)"},
		{layers.AdditiveConfig{NoProjections: true}, "scale.weight(4)"},
		{layers.AdditiveConfig{NoProjections: true, NoScale: true}, ""},
	} {
		p := newParams(t)
		tc.config.Init = layers.Ones()
		must.Get(layers.NewAdditiveAttention(p, 4, tc.config))(t)
		var got []string
		for _, q := range p.All() {
			got = append(got, fmt.Sprint(q.Name, q.Value.Shape()))
			if x := q.Value.Float64s(); slices.Min(x) != 1 || slices.Max(x) != 1 {
				t.Errorf("%s has the values %v, want only 1, from Init", q.Name, x)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%+v has the parameters %s, want %s", tc.config, s, tc.want)
		}
	}
}

// Each of two decoder states attends to its own source. The second source has one token and padding, so this token gets
// all the weight.
func ExampleAdditiveAttention() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	attention, err := layers.NewAdditiveAttention(params.Scope("attention"), 2, layers.AdditiveConfig{KeyInput: 1, Hidden: 8})
	check(err)

	g := G.NewGraph()
	state := input(g, "state", dense([]float64{1, 2, 3, 4}, 2, 1, 2))         // (B, T, Dim)
	source := input(g, "source", dense([]float64{5, 5, 5, 7, 0, 0}, 2, 3, 1)) // (B, S, KeyInput)
	lengths := arrayOf(g, "lengths", 3, 1)

	b := &layers.Build{Training: true, CaptureWeights: true}
	context, err := attention.Forward(b, state, source, source, layers.Mask{KeyLengths: lengths})
	check(err)
	weights := b.AttentionWeights()[0].Weights
	_, err = G.Grad(G.Must(G.Sum(context)), b.Learnables()...) // W_q, W_k and v
	check(err)
	var contextValue, weightsValue G.Value
	G.Read(context, &contextValue)
	G.Read(weights, &weightsValue)

	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Printf("weights %v %.3f\n", weights.Shape(), weightsValue.Data())
	fmt.Printf("context %v %.3f\n", context.Shape(), contextValue.Data())
	// Output:
	// weights (2, 1, 1, 3) [0.333 0.333 0.333 1.000 0.000 0.000]
	// context (2, 1, 1) [5.000 7.000]
}
