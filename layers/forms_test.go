package layers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// The fused and the composed form of attention have one meaning: here they are held together, in values and gradients.

// formCase is attention, once its random choices are made.
type formCase struct {
	q, k, v []int // shapes
	past    int   // how many past keys; 0 for none
	options layers.AttentionOptions
	mask    func(g *G.ExprGraph, dt tensor.Dtype) (m layers.Mask, wrt G.Nodes)
	what    string
}

// drawForm draws shapes and options.
func drawForm(r *rand.Rand) formCase {
	size := func() int {
		if r.IntN(8) == 0 {
			return 1 + r.IntN(150)
		}
		return 1 + r.IntN(9)
	}
	batch, groups, times := 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(3)
	t, s, k, v := size(), size(), 1+r.IntN(9), 1+r.IntN(9)
	var c formCase
	var scores []int
	switch r.IntN(4) {
	case 0:
		batch = 1
		c.q, c.k, c.v, scores = []int{t, k}, []int{s, k}, []int{s, v}, []int{t, s}
	case 1:
		c.q, c.k, c.v, scores = []int{batch, t, k}, []int{batch, s, k}, []int{batch, s, v}, []int{batch, t, s}
	case 2:
		scores = []int{batch, groups * times, t, s}
		c.q, c.k, c.v = []int{batch, groups * times, t, k}, []int{batch, groups, s, k}, []int{batch, groups, s, v}
	case 3:
		scores = []int{batch, groups * times, t, s}
		c.q, c.k, c.v = []int{batch, t, groups * times * k}, []int{batch, s, groups * k}, []int{batch, s, groups * v}
		c.options.Heads, c.options.KeyValueHeads = groups*times, groups
		if batch == 1 && r.IntN(2) == 0 {
			c.q, c.k, c.v = c.q[1:], c.k[1:], c.v[1:]
		}
	}
	if r.IntN(4) == 0 {
		c.past = 1 + r.IntN(5)
		scores[len(scores)-1] += c.past
	}
	if r.IntN(2) == 0 {
		c.options.Scale = r.NormFloat64()
	}
	if r.IntN(3) == 0 {
		c.options.Softcap = 0.2 + 2*r.Float64()
	}
	if r.IntN(4) == 0 {
		c.options.Dropout = 0.8 * r.Float64()
	}
	c.mask = drawMask(r, scores, batch, &c.what)
	c.what = fmt.Sprintf("%v, %v, %v, past %d, options %+v, %s", tensor.Shape(c.q), tensor.Shape(c.k), tensor.Shape(c.v), c.past, c.options, c.what)
	return c
}

// drawMask draws a mask of scores of a shape, and says what it is.
func drawMask(r *rand.Rand, scores []int, batch int, what *string) func(g *G.ExprGraph, dt tensor.Dtype) (layers.Mask, G.Nodes) {
	broadcast := func() []int {
		out := append([]int(nil), scores[r.IntN(len(scores)):]...)
		for i := range out[:len(out)-1] {
			if r.IntN(2) == 0 {
				out[i] = 1
			}
		}
		if last := len(out) - 1; r.IntN(3) == 0 {
			out[last] = 1 + r.IntN(out[last])
		}
		return out
	}
	causal := r.IntN(2) == 0
	var lengths, allowShape, biasShape []int
	var allow []bool
	var bias *tensor.Dense
	if r.IntN(2) == 0 {
		for range batch {
			lengths = append(lengths, r.IntN(scores[len(scores)-1]+1))
		}
	}
	if r.IntN(2) == 0 {
		allowShape = broadcast()
		allow = make([]bool, tensor.Shape(allowShape).TotalSize())
		for i := range allow {
			allow[i] = r.IntN(4) > 0
		}
	}
	if r.IntN(2) == 0 {
		biasShape = broadcast()
		bias = random(r.Uint64(), biasShape...)
		for i := range bias.Float64s() {
			if r.IntN(5) == 0 {
				bias.Float64s()[i] = -inf
			}
		}
	}
	var window *layers.Window
	if r.IntN(3) == 0 {
		window = &layers.Window{Left: r.IntN(12) - 1, Right: r.IntN(6) - 1}
	}
	offset := 0
	var offsets []int
	switch keys := scores[len(scores)-1]; r.IntN(4) {
	case 0:
		offset = r.IntN(2*keys+3) - keys - 1
	case 1:
		for range batch {
			offsets = append(offsets, r.IntN(2*keys+3)-keys-1)
		}
	}
	var slopes []float64
	if r.IntN(3) == 0 {
		heads := 1
		if len(scores) == 4 {
			heads = scores[1]
		}
		for range heads {
			slopes = append(slopes, r.Float64())
		}
	}
	*what = fmt.Sprintf("causal %t, window %+v, offset %d, offsets %v, slopes %v, lengths %v, allow %v, bias %v", causal, window, offset, offsets, slopes, lengths, tensor.Shape(allowShape), tensor.Shape(biasShape))
	return func(g *G.ExprGraph, dt tensor.Dtype) (m layers.Mask, wrt G.Nodes) {
		m.Causal, m.Window, m.Offset, m.Slopes = causal, window, offset, slopes
		if offsets != nil {
			m.Offsets = input(g, "offsets", dense(offsets, len(offsets)))
		}
		if lengths != nil {
			m.KeyLengths = input(g, "lengths", dense(lengths, len(lengths)))
		}
		if allow != nil {
			m.Allow = input(g, "allow", dense(allow, allowShape...))
		}
		if bias != nil {
			m.Bias = input(g, "bias", as(dt, bias))
			wrt = G.Nodes{m.Bias}
		}
		return m, wrt
	}
}

// formTolerance is how far the two forms may be apart.
func formTolerance(dt tensor.Dtype) float64 {
	if dt == tensor.Float32 {
		return 2e-5
	}
	return 1e-12
}

// compareForms builds an expression in both forms and compares its value and the gradients of a random cost.
func compareForms(t *testing.T, what string, dt tensor.Dtype, build func(g *G.ExprGraph, b *layers.Build) (out *G.Node, wrt G.Nodes)) {
	t.Helper()
	run := func(composed bool) ([][]float64, G.Nodes) {
		g := G.NewGraph()
		out, wrt := build(g, &layers.Build{Mode: layers.Training, Composed: composed})
		cost := weigh(t, out, input(g, "w", as(dt, random(8, out.Shape()...))))
		return read(t, append(G.Nodes{out}, gradients(t, cost, wrt...)...)...), wrt
	}
	want, _ := run(true)
	got, wrt := run(false)
	near(t, what+": output", got[0], want[0], formTolerance(dt))
	for i, n := range wrt {
		near(t, what+": gradient of "+n.Name(), got[i+1], want[i+1], formTolerance(dt))
	}
}

// TestFormsAgree draws attention of every kind.
func TestFormsAgree(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for round := range rounds {
		c := drawForm(r)
		dt := []tensor.Dtype{tensor.Float64, tensor.Float32}[round%2]
		compareForms(t, fmt.Sprintf("%v, %s", dt, c.what), dt, func(g *G.ExprGraph, b *layers.Build) (*G.Node, G.Nodes) {
			q, k, v := input(g, "q", as(dt, random(1, c.q...))), input(g, "k", as(dt, random(2, c.k...))), input(g, "v", as(dt, random(3, c.v...)))
			m, wrt := c.mask(g, dt)
			wrt = append(wrt, q, k, v)
			o := c.options
			o.Mask = m
			if c.past > 0 {
				o.PastKey, o.PastValue = input(g, "past key", as(dt, random(4, longer(c.k, c.past)...))), input(g, "past value", as(dt, random(5, longer(c.v, c.past)...)))
				wrt = append(wrt, o.PastKey, o.PastValue)
			}
			return node(t)(layers.ScaledDotProduct(b, q, k, v, o)), wrt
		})
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
}

// longer is a shape with another length.
func longer(shape []int, length int) []int {
	out := append([]int(nil), shape...)
	out[len(out)-2] = length
	return out
}

// TestFormsOfMultiHeadAttentionAgree has heads side by side, with and without a batch axis.
func TestFormsOfMultiHeadAttentionAgree(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 3))
	for round := range rounds {
		groups, batch, q, s := 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(20), 1+r.IntN(20)
		heads := groups * (1 + r.IntN(3))
		dim := heads * (1 + r.IntN(5))
		config := layers.AttentionConfig{
			Heads: heads, KeyValueHeads: groups, Softcap: float64(r.IntN(2)), Dropout: 0.2 * float64(r.IntN(2)), KeyInput: 1 + r.IntN(5), ValueInput: 1 + r.IntN(5), ValueDim: 1 + r.IntN(5), NoBias: r.IntN(2) == 0,
		}
		shape := func(length, width int) []int { return []int{batch, length, width} }
		if r.IntN(3) == 0 {
			batch = 1
			shape = func(length, width int) []int { return []int{length, width} }
		}
		var what string
		mask := drawMask(r, []int{batch, heads, q, s}, batch, &what)
		dt := []tensor.Dtype{tensor.Float64, tensor.Float32}[round%2]
		what = fmt.Sprintf("%v, %d wide, %+v, %v, S %d, %s", dt, dim, config, tensor.Shape(shape(q, dim)), s, what)
		compareForms(t, what, dt, func(g *G.ExprGraph, b *layers.Build) (*G.Node, G.Nodes) {
			p := must[*layers.Params](t)(layers.NewParams(dt, 5))
			a := must[*layers.MultiHeadAttention](t)(layers.NewMultiHeadAttention(p, dim, config))
			x := input(g, "x", as(dt, random(1, shape(q, dim)...)))
			y, z := input(g, "y", as(dt, random(2, shape(s, config.KeyInput)...))), input(g, "z", as(dt, random(3, shape(s, config.ValueInput)...)))
			m, wrt := mask(g, dt)
			out := node(t)(a.Forward(b, x, y, z, m))
			return out, append(append(wrt, x, y, z), b.Learnables()...)
		})
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
}

// TestFusedKeepsNoWeights looks for nodes of the size of the scores in a training graph.
func TestFusedKeepsNoWeights(t *testing.T) {
	const queries, keys = 7, 11
	for _, b := range []*layers.Build{{Mode: layers.Training}, {Mode: layers.Training, Composed: true}, {Mode: layers.Training, CaptureWeights: true}} {
		c := newBench(t)
		c.b = b
		y := c.node(c.multiHead(6, layers.AttentionConfig{Heads: 2}).Forward(b, c.in("x", 2, queries, 6), c.in("y", 2, keys, 6), c.in("z", 2, keys, 6), layers.Mask{}))
		gradients(t, weigh(t, y, input(c.g, "w", random(1, 2, queries, 6))), b.Learnables()...)
		found := false
		for _, n := range c.g.AllNodes() {
			s := n.Shape()
			found = found || len(s) == 4 && s[2] == queries && s[3] == keys
		}
		if want := b.Composed || b.CaptureWeights; found != want {
			t.Errorf("composed %t, weights captured %t: there are scores: %t", b.Composed, b.CaptureWeights, found)
		}
	}
}

// TestUnmaskedNaN stays in the rows that see it, in both forms.
func TestUnmaskedNaN(t *testing.T) {
	for _, composed := range []bool{false, true} {
		for _, what := range []string{"q", "k", "v"} {
			g := G.NewGraph()
			in := map[string]*tensor.Dense{"q": random(1, 4, 2), "k": random(2, 4, 2), "v": random(3, 4, 2)}
			in[what].Float64s()[2*2] = math.NaN() // row 2
			b := &layers.Build{Composed: composed}
			out := node(t)(layers.ScaledDotProduct(b, input(g, "q", in["q"]), input(g, "k", in["k"]), input(g, "v", in["v"]),
				layers.AttentionOptions{Mask: layers.Mask{Causal: true}}))
			got := read(t, out)[0]
			for r := range 4 {
				want := r == 2 || r == 3 && what != "q"
				if is := math.IsNaN(got[2*r]); is != want {
					t.Errorf("composed %t, NaN in row 2 of %s: row %d of the output is %v", composed, what, r, got[2*r:][:2])
				}
			}
		}
	}
}

// BenchmarkAttentionForms is attention alone, forward and with its gradients.
func BenchmarkAttentionForms(b *testing.B) {
	for _, shape := range [][4]int{{32, 2, 16, 16}, {12, 4, 64, 32}, {1, 4, 1024, 64}} {
		for _, composed := range []bool{false, true} {
			for _, backward := range []bool{false, true} {
				b.Run(fmt.Sprintf("%v/composed=%t/backward=%t", tensor.Shape(shape[:]), composed, backward), func(b *testing.B) {
					g := G.NewGraph()
					var in G.Nodes
					for i, name := range []string{"q", "k", "v"} {
						in = append(in, input(g, name, as(tensor.Float32, random(uint64(i), shape[:]...))))
					}
					out := node(b)(layers.ScaledDotProduct(&layers.Build{Composed: composed}, in[0], in[1], in[2], layers.AttentionOptions{Mask: layers.Mask{Causal: true}}))
					if backward {
						gradients(b, node(b)(ops.Sum(&ops.Env{}, out)), in...)
					}
					vm := G.NewTapeMachine(g)
					defer vm.Close()
					for b.Loop() {
						if err := vm.RunAll(); err != nil {
							b.Fatal(err)
						}
						vm.Reset()
					}
				})
			}
		}
	}
}
