package layers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// drawCall draws a call with random options, and a layout for the call. The numbers of queries and keys are usually at
// most 6, and sometimes up to maxSize.
func drawCall(r *rand.Rand, maxSize int) (*onnxCall, onnxLayout) {
	some := func(n int) bool { return r.IntN(n) == 0 }
	length := func() int {
		if some(6) {
			return 1 + r.IntN(maxSize)
		}
		return 1 + r.IntN(6)
	}
	c := &onnxCall{onnxSizes: onnxSizes{B: 1 + r.IntN(3), G: 1 + r.IntN(3), T: length(), S: length(), K: 1 + r.IntN(5), V: 1 + r.IntN(5)}}
	c.H = c.G * (1 + r.IntN(3))
	if some(3) {
		c.P = length()
	}
	l := onnxLayout(r.IntN(5))
	if some(8) && c.keys() > 6 {
		l = onnxMatrix // the cheapest layout for many keys
	}
	if l == onnxSideOne || l == onnxMatrix {
		c.B = 1
	}
	if l == onnxBatch || l == onnxMatrix {
		c.H, c.G = 1, 1
	}
	c.fill(r.Uint64())
	if some(2) {
		c.options.Scale = r.NormFloat64()
	}
	if some(3) {
		c.options.Softcap = 0.2 + 2*r.Float64()
	}
	if some(4) {
		c.options.Score = wavy
	}
	c.drawMask(r)
	return c, l
}

// wavy is a ScoreFunc that depends on all of its arguments.
func wavy(score float64, head, query, key int) (value, derivative float64) {
	x := float64(query-key) / 100
	return score + 0.3*math.Sin(score+float64(head)) - x*x/(1+x*x), 1 + 0.3*math.Cos(score+float64(head))
}

// drawMask gives the call a random mask.
func (c *onnxCall) drawMask(r *rand.Rand) {
	some := func(n int) bool { return r.IntN(n) == 0 }
	m := &c.options.Mask
	m.Causal = some(2)
	if some(3) {
		m.Window = &layers.Window{Left: r.IntN(12) - 1, Right: r.IntN(6) - 1}
	}
	near := func() int { return r.IntN(2*c.keys()+3) - c.keys() - 1 } // an offset at which some key may be visible
	switch r.IntN(4) {
	case 0:
		m.Offset = near()
	case 1:
		for range c.B {
			c.offsets = append(c.offsets, near())
		}
	}
	if some(3) {
		for range c.B {
			c.lengths = append(c.lengths, r.IntN(c.keys()+1))
		}
	}
	if some(4) {
		modulus, far := 1+r.IntN(5), r.IntN(c.keys()+1)
		c.blocks = func(query, key int) bool { return key%modulus == 0 || query-key < far && key-query < far }
	}
	if some(4) {
		for range c.B {
			number, length, scattered := 9, 1+r.IntN(c.keys()), some(4)
			for j := range c.keys() {
				switch {
				case scattered:
					number = r.IntN(3)
				case j%length == 0:
					number -= 2
				}
				c.documents = append(c.documents, number)
			}
		}
	}
	if some(4) {
		for range c.H {
			m.Slopes = append(m.Slopes, 0.3*r.NormFloat64())
		}
	}
	shape := func() []int {
		s := []int{c.B, c.H, c.T, c.keys()}[r.IntN(4):]
		for i := range s[:len(s)-1] {
			if some(2) {
				s[i] = 1
			}
		}
		if last := &s[len(s)-1]; some(4) {
			*last = 1 + r.IntN(*last)
		}
		return s
	}
	if some(3) {
		s := shape()
		values := make([]bool, tensor.Shape(s).TotalSize())
		for i := range values {
			values[i] = !some(4)
		}
		c.allow = dense(values, s...)
	}
	if some(3) {
		c.bias = random(r.Uint64(), shape()...)
		for i := range c.bias.Float64s() {
			if some(5) {
				c.bias.Float64s()[i] = -inf
			}
		}
	}
}

// drawRounds calls test several times, and stops after a failure. Each call gets a new random source, and a string with
// the source's seed for messages.
func drawRounds(t *testing.T, rounds int, test func(r *rand.Rand, what string)) {
	t.Helper()
	seed := testseed.Of(t)
	for round := range uint64(testseed.Cases(rounds)) {
		test(rand.New(rand.NewPCG(seed, round)), fmt.Sprintf("rand.NewPCG(%d, %d)", seed, round))
		if t.Failed() {
			return
		}
	}
}

// TestOnnxRandomly checks calls with random combinations of options. Some have several tiles of queries and keys.
func TestOnnxRandomly(t *testing.T) {
	t.Parallel()
	drawRounds(t, 150, func(r *rand.Rand, what string) {
		c, l := drawCall(r, 150)
		dt := []tensor.Dtype{tensor.Float64, tensor.Float32}[r.IntN(2)]
		c.check(t, fmt.Sprintf("%s: %v", what, c), l, dt, onnxFills[r.IntN(3)])
	})
}

// TestOnnxDropout reads which weights a run of the composed form drops, and computes the expected outputs and gradients
// from them. In runs with the same number, both forms must return these results.
func TestOnnxDropout(t *testing.T) {
	drawRounds(t, 40, func(r *rand.Rand, what string) {
		c, l := drawCall(r, 150)
		p := 0.1 + 0.6*r.Float64()
		c.options.Dropout = p
		dt := []tensor.Dtype{tensor.Float64, tensor.Float32}[r.IntN(2)]
		b := layers.Build{Training: true, Seed: r.Uint64(), Runs: r.Uint64N(3), Composed: true}
		what = fmt.Sprintf("%s: %v of %v, %v", what, l, dt, c)
		g := c.gradient()
		got := c.run(t, l, dt, b, g)
		c.keep = make([]float64, len(got.stages["weights"]))
		for i, w := range got.stages["weights"] {
			d := got.stages["dropped"][i]
			if d != 0 {
				c.keep[i] = 1 / (1 - p)
			}
			if math.Abs(d-w*c.keep[i]) > 1e-6*w {
				t.Fatalf("%s: weight %d, %v, became %v, want 0 or %v", what, i, w, d, w/(1-p))
			}
		}
		want := c.expect(g)
		want.agree(t, what+": composed", got, formTolerance(dt))
		b.Composed = false
		want.agree(t, what+": fused", c.run(t, l, dt, b, g), formTolerance(dt))
	})
}

// TestOnnxNotFinite puts NaN or infinity into unmasked operands. In both forms the same elements of outputs and
// gradients must be finite.
func TestOnnxNotFinite(t *testing.T) {
	drawRounds(t, 60, func(r *rand.Rand, what string) {
		c, l := drawCall(r, 150)
		c.options.Dropout = []float64{0, 0, 0.4}[r.IntN(3)]
		operands := [][]float64{c.q, c.k, c.v}
		if c.P > 0 {
			operands = append(operands, c.pastKey, c.pastValue)
		}
		x := operands[r.IntN(len(operands))]
		x[r.IntN(len(x))] = onnxFills[r.IntN(3)]
		b, g := layers.Build{Training: true, Seed: r.Uint64()}, c.gradient()
		fused := c.run(t, l, tensor.Float64, b, g)
		b.Composed = true
		composed := c.run(t, l, tensor.Float64, b, g)
		compare := func(part string, got, want []float64) {
			what := fmt.Sprintf("%s: %v of %v: %s", what, l, c, part)
			got, want = slices.Clone(got), slices.Clone(want)
			for i := range got {
				if math.IsNaN(got[i]) && math.IsNaN(want[i]) {
					got[i], want[i] = 0, 0
				}
			}
			want, got = onnxFinite(t, what, want, got)
			near(t, what, got, want, 1e-12)
		}
		compare("output", fused.output, composed.output)
		for name, x := range fused.grads {
			compare("gradient of "+name, x, composed.grads[name])
		}
	})
}
