// Package ops implements the operations that Heed adds to Gorgonia. Each is a gorgonia.SDOp for fixed shapes and a
// fixed dtype, with its symbolic derivative beside it.
//
// Every op owns the tensor that it returns and fills it again in every run, so that running a graph allocates almost
// nothing. Because of that state, a graph with these ops may have only one live VM at a time. With Buffers, another op
// may reuse the tensor's memory once all its readers have run. Ops never write to their inputs. They return errors and
// don't panic: the TapeMachine runs them on its own goroutine, where a panic would end the process.
//
// All gradients follow one rule: zero times anything is zero, NaN and infinity included. A position that nothing
// attends to and that no loss reads can hold any value: it never reaches a gradient.
package ops

import (
	"cmp"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"unsafe"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// op is the only implementation of gorgonia.SDOp here. The functions that make ops set run and grad.
type op struct {
	name   string // the operation and all its attributes, for printing and hashing
	salt   int    // added to the hash if another node already has the hash of the name
	inputs G.Nodes
	shapes []tensor.Shape // of the inputs
	out    hm.Type
	shape  tensor.Shape // of the output
	diff   []bool       // which inputs have a gradient; nil for none

	run  func(in []G.Value) (G.Value, error)
	grad func(in G.Nodes, out, grad *G.Node) (G.Nodes, error)

	env    *Env     // the Env of its graph
	output *lease   // the output's memory; nil if the op always owns it
	fills  []*lease // the buffers that run fills, including the output
	saved  []*lease // the buffers that run reads and an input's op filled, besides that op's output
	reads  []*lease // all buffers that run reads, set by Buffers
	ran    uint64   // the last run of the Buffers that included this op

	shared any    // state that the parts of a joint op share
	layer  string // the op's name in errors, if it isn't name; it isn't part of the hash
}

var _ G.SDOp = (*op)(nil)

func (o *op) Arity() int { return len(o.inputs) }

func (o *op) Type() hm.Type {
	var ts []hm.Type
	for _, n := range o.inputs {
		ts = append(ts, n.Type())
	}
	return hm.NewFnType(append(ts, o.out)...)
}

func (o *op) InferShape(...G.DimSizer) (tensor.Shape, error) { return o.shape.Clone(), nil }

func (o *op) Do(in ...G.Value) (v G.Value, err error) {
	defer func() {
		if r := recover(); r != nil { // a mistake in this package; the VM's caller couldn't recover from it
			v, err = nil, fmt.Errorf("%s: %v", o.name, r)
		}
	}()
	for i, v := range in {
		if v != nil && !sameLayout(v.Shape(), o.shapes[i]) {
			return nil, fmt.Errorf("%s: the graph was built for an input of shape %v, got %v", o.name, o.shapes[i], v.Shape())
		}
	}
	b := o.env.Buffers
	if err = b.begin(o.env, o); err == nil {
		v, err = o.run(in)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(o.layer, o.name), err)
	}
	b.end(o)
	return v, nil
}

func (o *op) ReturnsPtr() bool     { return false }
func (o *op) CallsExtern() bool    { return false }
func (o *op) OverwritesInput() int { return -1 }
func (o *op) String() string       { return o.name }

func (o *op) WriteHash(h hash.Hash) {
	io.WriteString(h, o.name)
	if o.salt > 0 {
		fmt.Fprintf(h, " salt %d", o.salt)
	}
}

func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *op) DiffWRT(inputs int) []bool {
	if o.diff == nil {
		return make([]bool, inputs)
	}
	return o.diff
}

func (o *op) SymDiff(in G.Nodes, out, grad *G.Node) (G.Nodes, error) {
	if o.grad == nil {
		return nil, fmt.Errorf("%s has no derivative (Heed's gradients are of first order)", o.name)
	}
	return o.grad(in, out, grad)
}

// typeOf returns the Gorgonia type of a tensor.
func typeOf(dt tensor.Dtype, shape tensor.Shape) hm.Type {
	if len(shape) == 0 {
		return dt
	}
	return G.TensorType{Dims: len(shape), Of: dt}
}

// dtypeOf returns the tensor dtype of F.
func dtypeOf[F kernel.Float]() tensor.Dtype {
	if _, ok := any(F(0)).(float32); ok {
		return tensor.Float32
	}
	return tensor.Float64
}

// newOp returns an op that fills one tensor of dtype F and the given shape. The output that fill gets may hold any
// values.
func newOp[F kernel.Float](name string, shape tensor.Shape, fill func(out []F, in []G.Value) error) *op {
	buf := newBuffer[F](shape)
	return &op{
		name: name, shape: shape, out: typeOf(dtypeOf[F](), shape), output: &buf.lease, fills: []*lease{&buf.lease},
		run: func(in []G.Value) (G.Value, error) {
			out := buf.slice()
			if err := fill(out, in); err != nil {
				return nil, err
			}
			return buf.dense, nil
		},
	}
}

// buffer is a tensor that an op fills. It is allocated on first use.
type buffer[F kernel.Float] struct {
	lease
	shape tensor.Shape
	data  []F
	dense *tensor.Dense
}

func newBuffer[F kernel.Float](shape tensor.Shape) *buffer[F] {
	b := &buffer[F]{lease: lease{bytes: shape.TotalSize() * int(unsafe.Sizeof(F(0)))}, shape: shape, dense: &tensor.Dense{}}
	b.bind = func(words []uint64) { // the tensor's address must not change, as nodes point to it
		b.data, *b.dense = nil, tensor.Dense{}
		if words != nil {
			b.data = unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(words))), shape.TotalSize())
			*b.dense = *tensor.New(tensor.WithShape(shape...), tensor.WithBacking(b.data))
		}
	}
	return b
}

// slice returns the buffer's elements, in the memory that the op has taken, or else in memory of its own.
func (b *buffer[F]) slice() []F {
	if b.slab == nil {
		b.slab = &slab{bytes: b.bytes}
	}
	if b.over != b.slab {
		b.over = b.slab
		b.bind(b.over.memory())
	}
	return b.data
}

// joint adds ops that compute several tensors of dtype F at once, such as the gradients of an op's inputs. The first
// node does the work; each of the others depends on it and returns its part. work is scratch memory for one run of
// fill; saved was filled by an input's op and is read by fill. Both may be nil.
func joint[F kernel.Float](e *Env, name string, shapes []tensor.Shape, in []*G.Node, work, saved *buffer[F], fill func(out [][]F, in []G.Value) error) (G.Nodes, error) {
	bufs := make([]*buffer[F], len(shapes))
	for i, s := range shapes {
		bufs[i] = newBuffer[F](s)
	}
	out := make([][]F, len(bufs))
	o := &op{
		name: name, shape: shapes[0], out: typeOf(dtypeOf[F](), shapes[0]), output: &bufs[0].lease, shared: bufs,
		run: func(in []G.Value) (G.Value, error) {
			for i, b := range bufs {
				out[i] = b.slice()
			}
			defer clear(out) // a reference would keep memory that Buffers have released
			if err := fill(out, in); err != nil {
				return nil, err
			}
			return bufs[0].dense, nil
		},
	}
	for _, b := range bufs {
		o.fills = append(o.fills, &b.lease)
	}
	if work != nil {
		o.fills = append(o.fills, &work.lease)
	}
	if saved != nil {
		o.saved = append(o.saved, &saved.lease)
	}
	first, err := e.apply(o, in...)
	if err != nil {
		return nil, err
	}
	// Gorgonia returns an equal node if the graph has one: then use its buffers.
	if owner, ok := first.Op().(*op); ok {
		bufs = owner.shared.([]*buffer[F])
	}
	nodes := G.Nodes{first}
	for i := 1; i < len(shapes); i++ {
		b := bufs[i]
		part := &op{
			name: fmt.Sprintf("%s.%d", name, i), shape: b.shape, out: typeOf(dtypeOf[F](), b.shape), output: &b.lease,
			run: func([]G.Value) (G.Value, error) { return b.dense, nil },
		}
		n, err := e.apply(part, first)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}
