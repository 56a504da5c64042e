package layers_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// Attention's options mean the same as in the ONNX operator Attention, opsets 23 to 25:
// https://onnx.ai/onnx/operators/onnx__Attention.html, with the corrections of onnx/onnx#8068 (causal attention with a
// cache of fixed size, rows with no key to attend to) and the windows of onnx/onnx#8108.
//
// This file implements the operator in plain loops, from its rules, without any code of the library. The tests in the
// files onnx_*_test.go compare this implementation with the library, and with numbers computed by hand.

// An onnxCall is a call of the operator. It also has the options that only the library has.
type onnxCall struct {
	onnxSizes
	options layers.AttentionOptions // options that aren't nodes: Scale, Softcap and Dropout, and the Mask's Causal, Window, Offset and Slopes

	offsets, lengths []int                     // (B); nil for none
	documents        []int                     // (B, P+S); nil for none
	blocks           func(query, key int) bool // for a BlockMask; nil for none
	allow, bias      *tensor.Dense             // right-aligned to (B, H, T, P+S); nil for none

	q                  []float64 // (B, H, T, K)
	k, v               []float64 // (B, G, S, K) and (B, G, S, V)
	pastKey, pastValue []float64 // (B, G, P, K) and (B, G, P, V)

	keep []float64 // dropout's factor for each weight; nil for none
}

// onnxSizes are the sizes of a call: the numbers of batch elements, query heads, key and value heads, queries, keys and
// past keys, and the widths of keys and values.
type onnxSizes struct{ B, H, G, T, S, P, K, V int }

// whole replaces sizes of 0 by their defaults. G defaults to H, P to 0, and the other sizes to 1.
func (n onnxSizes) whole() onnxSizes {
	n.B, n.H, n.T, n.S, n.K, n.V = cmp.Or(n.B, 1), cmp.Or(n.H, 1), cmp.Or(n.T, 1), cmp.Or(n.S, 1), cmp.Or(n.K, 1), cmp.Or(n.V, 1)
	n.G = cmp.Or(n.G, n.H)
	return n
}

// keys returns the number of keys, including past keys.
func (n onnxSizes) keys() int { return n.P + n.S }

// String describes a call without the elements of its tensors.
func (c *onnxCall) String() string {
	shape := func(t *tensor.Dense) tensor.Shape {
		if t == nil {
			return nil
		}
		return t.Shape()
	}
	o := c.options
	return fmt.Sprintf("%+v, scale %v, softcap %v, dropout %v, causal %t, window %+v, offset %d, offsets %v, lengths %v, documents %v, blocks %t, score %t, slopes %v, allow %v, bias %v",
		c.onnxSizes, o.Scale, o.Softcap, o.Dropout, o.Mask.Causal, o.Mask.Window, o.Mask.Offset, c.offsets, c.lengths, c.documents, c.blocks != nil, o.Score != nil, o.Mask.Slopes, shape(c.allow), shape(c.bias))
}

// onnxResults are the outputs of a call, and the gradients of a cost with respect to its inputs.
type onnxResults struct {
	output []float64 // (B, H, T, V)
	stages map[string][]float64
	grads  map[string][]float64 // with the shapes of the inputs
}

// position returns the position of query t among the keys.
func (c *onnxCall) position(b, t int) int {
	p := c.P + t + c.options.Mask.Offset
	if c.offsets != nil {
		p += c.offsets[b]
	}
	return p
}

// positions returns the number of positions of queries in a call's BlockMask.
func (c *onnxCall) positions() int { return max(1, c.P+c.T+c.options.Mask.Offset) }

// sees reports whether query t may attend to key j. Keys count from the first past key.
func (c *onnxCall) sees(b, h, t, j int) bool {
	m := c.options.Mask
	p := c.position(b, t)
	w := layers.Window{Left: -1, Right: -1}
	if m.Window != nil {
		w = *m.Window
	}
	switch {
	case c.lengths != nil && j >= c.lengths[b]:
		return false
	case c.documents != nil && (p < 0 || p >= c.keys() || c.documents[b*c.keys()+p] != c.documents[b*c.keys()+j]):
		return false
	case c.blocks != nil && (p < 0 || p >= c.positions() || !c.blocks(p, j)):
		return false
	case m.Causal && j > p:
		return false
	case w.Left != -1 && p-j > w.Left:
		return false
	case w.Right != -1 && j-p > w.Right:
		return false
	}
	if c.allow != nil {
		if i := onnxEntry(c.allow.Shape(), b, h, t, j); i < 0 || !c.allow.Bools()[i] {
			return false
		}
	}
	if c.bias != nil {
		if i := onnxEntry(c.bias.Shape(), b, h, t, j); i < 0 || c.bias.Float64s()[i] == -inf {
			return false
		}
	}
	return true
}

// onnxEntry returns the index of a mask's entry for (b, h, t, j). Axes are right-aligned. Axes of size 1 broadcast,
// except the last axis. If j is past the end of the last axis, onnxEntry returns −1.
func onnxEntry(shape tensor.Shape, index ...int) int {
	entry := 0
	for axis, n := range shape {
		x := index[len(index)-len(shape)+axis]
		if n == 1 && axis < len(shape)-1 {
			x = 0
		}
		if x >= n {
			return -1
		}
		entry = entry*n + x
	}
	return entry
}

// added returns the bias added to the score of a query and a visible key.
func (c *onnxCall) added(b, h, t, j int) float64 {
	sum := 0.0
	if s := c.options.Mask.Slopes; s != nil {
		sum -= s[h] * math.Abs(float64(c.position(b, t)-j))
	}
	if c.bias != nil {
		sum += c.bias.Float64s()[onnxEntry(c.bias.Shape(), b, h, t, j)]
	}
	return sum
}

// change returns the score that Score makes of a score, and its derivative.
func (c *onnxCall) change(score float64, h, b, t, j int) (value, derivative float64) {
	if c.options.Score == nil {
		return score, 1
	}
	return c.options.Score(score, h, c.position(b, t), j)
}

// expect computes the outputs and the gradients of Σ g·output.
func (c *onnxCall) expect(g []float64) onnxResults {
	n, heads := c.keys(), c.B*c.H
	scores := func() []float64 { return make([]float64, heads*c.T*n) }
	key, value := c.join(c.pastKey, c.k, c.K), c.join(c.pastValue, c.v, c.V)
	raw, capped, masked, weights := scores(), scores(), scores(), scores()
	out, dq := make([]float64, heads*c.T*c.V), make([]float64, len(c.q))
	dkey, dvalue := make([]float64, len(key)), make([]float64, len(value))
	var dbias []float64
	if c.bias != nil {
		dbias = make([]float64, len(c.bias.Float64s()))
	}
	scale := c.options.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(c.K))
	}
	for row := range heads * c.T {
		b, h, t := row/c.T/c.H, row/c.T%c.H, row%c.T
		group := b*c.G + h*c.G/c.H
		q, dq := c.q[row*c.K:][:c.K], dq[row*c.K:][:c.K]
		k := func(j int) []float64 { return key[(group*n+j)*c.K:][:c.K] }
		v := func(j int) []float64 { return value[(group*n+j)*c.V:][:c.V] }
		raw, capped, masked, weights := raw[row*n:][:n], capped[row*n:][:n], masked[row*n:][:n], weights[row*n:][:n]
		largest, sum := -inf, 0.0
		var seen []int
		for j := range n {
			raw[j] = scale * onnxDot(q, k(j))
			if capped[j] = raw[j]; c.options.Softcap > 0 {
				capped[j] = c.options.Softcap * math.Tanh(raw[j]/c.options.Softcap)
			}
			changed, _ := c.change(capped[j], h, b, t, j)
			if masked[j] = -inf; c.sees(b, h, t, j) {
				masked[j] = changed + c.added(b, h, t, j)
				seen, largest = append(seen, j), max(largest, masked[j])
			}
		}
		for _, j := range seen {
			sum += math.Exp(masked[j] - largest)
		}
		kept := func(j int) float64 {
			if c.keep == nil {
				return 1
			}
			return c.keep[row*n+j]
		}
		g := g[row*c.V:][:c.V]
		mean := 0.0 // the weighted mean of the weights' gradients
		for _, j := range seen {
			weights[j] = math.Exp(masked[j]-largest) / sum
			onnxAdd(out[row*c.V:][:c.V], weights[j]*kept(j), v(j))
			mean += weights[j] * kept(j) * onnxDot(g, v(j))
		}
		for _, j := range seen {
			onnxAdd(dvalue[(group*n+j)*c.V:][:c.V], weights[j]*kept(j), g)
			d := weights[j] * (kept(j)*onnxDot(g, v(j)) - mean)
			if c.bias != nil {
				dbias[onnxEntry(c.bias.Shape(), b, h, t, j)] += d
			}
			_, slope := c.change(capped[j], h, b, t, j)
			d *= slope
			if c.options.Softcap > 0 {
				d *= 1 - math.Pow(math.Tanh(raw[j]/c.options.Softcap), 2)
			}
			onnxAdd(dq, scale*d, k(j))
			onnxAdd(dkey[(group*n+j)*c.K:][:c.K], scale*d, q)
		}
	}
	r := onnxResults{output: out, grads: map[string][]float64{"q": dq, "bias": dbias}}
	r.stages = map[string][]float64{"key": key, "value": value, "scores": raw, "capped": capped, "masked": masked, "weights": weights}
	r.grads["past key"], r.grads["k"] = c.part(dkey, c.K)
	r.grads["past value"], r.grads["v"] = c.part(dvalue, c.V)
	return r
}

func onnxDot(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// onnxAdd adds a·x to y. If a is 0, y doesn't change, even if x has NaN or infinity.
func onnxAdd(y []float64, a float64, x []float64) {
	if a == 0 {
		return
	}
	for i := range y {
		y[i] += a * x[i]
	}
}

// join puts past keys or values before the new ones: (B, G, P, width) and (B, G, S, width) give (B, G, P+S, width).
func (c *onnxCall) join(past, x []float64, width int) []float64 {
	var out []float64
	for i := range c.B * c.G {
		out = append(out, past[i*c.P*width:][:c.P*width]...)
		out = append(out, x[i*c.S*width:][:c.S*width]...)
	}
	return out
}

// part is the inverse of join.
func (c *onnxCall) part(joined []float64, width int) (past, x []float64) {
	for head := range slices.Chunk(joined, c.keys()*width) {
		past, x = append(past, head[:c.P*width]...), append(x, head[c.P*width:]...)
	}
	return past, x
}
