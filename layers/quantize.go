package layers

import (
	"fmt"
	"runtime/debug"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Quantize replaces the float32 weights of all Linears, and tables of embeddings that are also the weight of a head, by
// int8 weights, which take a quarter of the memory. Where reading the weights takes most of the time, as for the next
// token of one sequence, decoding is several times as fast with AVX-512 or AVX2. AVX2 gains less for several sequences
// at once. Other parameters stay as they are.
//
// A row of weights, for one output, becomes integers from −127 to 127 times a scale: the row's largest number in size
// divided by 127. Each weight becomes the nearest multiple, so it changes by at most half of the scale. In a product,
// the inputs are rounded too: a token's inputs become multiples of the largest one in size, divided by 32,767, or by
// 2³¹/(8·In) if In, the number of inputs, is above 8,256. All other arithmetic is in float32. A token's product
// doesn't depend on the other tokens of the graph, or on the processor's instructions.
//
// Quantize frees the float32 values: a Param's Value then has only a shape and a dtype. Graphs built afterwards use the
// int8 weights, and must be for evaluation and without gradients; graphs built before keep the float32 values. Methods
// that need the values, such as Save, Restore and Adapter.Merge, return an error.
//
// Quantize returns an error and changes nothing if the parameters aren't float32, or if a weight is NaN or infinite.
// Weights that are int8 already stay.
func (p *Params) Quantize() error {
	if err := p.checkInt8(); err != nil {
		return err
	}
	quantized := map[*Param]*kernel.Int8{}
	for _, q := range p.All() {
		if !q.multiplies() || q.int8 != nil {
			continue
		}
		var err error
		if quantized[q], err = q.quantized(); err != nil {
			return err
		}
	}
	for q, weights := range quantized {
		p.set.bytes += weights.Bytes() - len(q.Value.Raw)
		q.setInt8(weights)
	}
	return nil
}

// checkInt8 returns an error if the parameters can't become int8.
func (p *Params) checkInt8() error {
	if p.dtype != tensor.Float32 {
		return fmt.Errorf("only float32 weights can become int8, got %v: make the Params with tensor.Float32", p.dtype)
	}
	return nil
}

// releaseBytes is how many bytes of float32 values are garbage before quantizeLoaded returns them to the system.
const releaseBytes = 1 << 26

// quantizeLoaded quantises parameters that BlankInt8 has made, after they have been loaded. The argument garbage counts
// the bytes of their float32 values.
func quantizeLoaded[T float32 | float64](m *mapping[T], garbage *int) error {
	for i := range m.parts {
		q := &m.parts[i]
		if !q.toInt8 || !q.multiplies() {
			continue
		}
		weights, err := q.quantized()
		if err != nil {
			return err
		}
		*garbage += len(q.Value.Raw)
		q.setInt8(weights)
		q.values = nil
	}
	if *garbage > releaseBytes {
		*garbage = 0
		debug.FreeOSMemory()
	}
	return nil
}

// multiplies reports whether a Linear multiplies by the parameter.
func (q *Param) multiplies() bool { return q.linear || q.head }

// quantized returns the int8 form of a parameter of shape (Out, In).
func (q *Param) quantized() (*kernel.Int8, error) {
	values, err := valuesOf[float32](q)
	if err != nil {
		return nil, err
	}
	weights, err := kernel.NewInt8(0, values, q.Value.Shape()[0])
	if err != nil {
		err = fmt.Errorf("parameter %q: %w", q.Name, err)
	}
	return weights, err
}

// setInt8 replaces the values by weights. The Value becomes a tensor that has its shape, but no memory for it.
func (q *Param) setInt8(weights *kernel.Int8) {
	shape := q.Value.Shape().Clone()
	q.kept.Forget()
	q.int8, q.Value = weights, tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(1))
	q.Value.AP = tensor.MakeAP(shape, shape.CalcStrides(), 0, 0)
}

// bindWeights is Bind for a parameter that may have int8 weights: the node then holds their scales, (Out).
func (b *Build) bindWeights(g *G.ExprGraph, p *Param) (*G.Node, error) {
	own := b.own(p)
	if own.int8 == nil {
		return b.Bind(g, p)
	}
	if err := b.Env().Enter(g); err != nil {
		return nil, err
	}
	if b.Training {
		return nil, fmt.Errorf("parameter %q has int8 weights, which can't be trained: open or make the model again, without Quantize", p.Name)
	}
	scales := own.int8.Scales()
	return b.bind(g, own, tensor.New(tensor.WithShape(len(scales)), tensor.WithBacking(scales)), true)
}
