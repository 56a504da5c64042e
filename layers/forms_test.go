package layers_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// The fused and the composed form of attention compute the same function. These tests compare their values and
// gradients.

// formTolerance returns the largest allowed difference between the two forms.
func formTolerance(dt tensor.Dtype) float64 {
	if dt == tensor.Float32 {
		return 2e-5
	}
	return 1e-12
}

// TestFormsOfMultiHeadAttentionAgree compares the values of the two forms and the gradients of a random cost, with and
// without a batch axis. TestOnnxRandomly and TestOnnxDropout compare the two forms of attention without projections.
func TestFormsOfMultiHeadAttentionAgree(t *testing.T) {
	drawRounds(t, 40, func(r *rand.Rand, what string) {
		groups, l := 1+r.IntN(3), onnxSide
		n := onnxSizes{B: 1 + r.IntN(3), H: groups * (1 + r.IntN(3)), G: groups, T: 1 + r.IntN(20), S: 1 + r.IntN(20)}
		dim := n.H * (1 + r.IntN(5))
		config := layers.AttentionConfig{
			Heads: n.H, KeyValueHeads: groups, Softcap: float64(r.IntN(2)), Dropout: 0.2 * float64(r.IntN(2)), KeyInput: 1 + r.IntN(5), ValueInput: 1 + r.IntN(5), ValueDim: 1 + r.IntN(5), NoBias: r.IntN(2) == 0,
			Sinks: r.IntN(3) == 0, OutputGate: r.IntN(3) == 0, QKNorm: true, JointNorm: r.IntN(2) == 0,
		}
		if r.IntN(3) == 0 {
			n.B, l = 1, onnxSideOne
		}
		call := &onnxCall{onnxSizes: n}
		call.drawMask(r)
		dt := []tensor.Dtype{tensor.Float64, tensor.Float32}[r.IntN(2)]
		run := func(composed bool) ([][]float64, G.Nodes) {
			g := G.NewGraph()
			b := &layers.Build{Training: true, Composed: composed}
			a := must.Get(layers.NewMultiHeadAttention(must.Get(layers.NewParams(dt, 5))(t), dim, config))(t)
			operand := func(name string, seed uint64, length, width int) *G.Node {
				return input(g, name, as(dt, l.lay(random(seed, n.B*length*width).Float64s(), n.B, 1, length, width)))
			}
			m, wrt := call.mask(g, l, dt)
			wrt = append(wrt, operand("x", 1, n.T, dim), operand("y", 2, n.S, config.KeyInput), operand("z", 3, n.S, config.ValueInput))
			x := wrt[len(wrt)-3:]
			out := must.Get(a.Forward(b, x[0], x[1], x[2], m))(t)
			wrt = append(wrt, b.Learnables()...)
			return read(t, append(G.Nodes{out}, gradients(t, weigh(t, out, input(g, "w", as(dt, random(8, out.Shape()...)))), wrt...)...)...), wrt
		}
		want, wrt := run(true)
		got, _ := run(false)
		for i := range want {
			near(t, fmt.Sprintf("%s: %v of %v, %d wide, %+v, %v: output, or gradient %d of %v", what, l, dt, dim, config, call, i, wrt), got[i], want[i], formTolerance(dt))
		}
	})
}

// TestFusedKeepsNoWeights checks that only the composed form and CaptureWeights make nodes as large as the scores.
func TestFusedKeepsNoWeights(t *testing.T) {
	const queries, keys = 7, 11
	for _, b := range []*layers.Build{{Training: true}, {Training: true, Composed: true}, {Training: true, CaptureWeights: true}} {
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
			t.Errorf("composed %t, weights captured %t: has nodes as large as the scores: %t, want %t", b.Composed, b.CaptureWeights, found, want)
		}
	}
}
