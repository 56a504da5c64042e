// Package ops holds the operations that Heed adds to Gorgonia: each is a gorgonia.SDOp of fixed shapes and dtype, with
// its symbolic derivative beside it.
//
// Every op owns the tensor that it returns and fills it anew on every run, so that running a graph allocates next to
// nothing. That state is why a graph with these ops may have one live VM at a time. With Buffers, the tensor's memory
// is another op's as soon as all that read it have run. Ops never write to their inputs, and they return errors rather
// than panic: the TapeMachine runs them on a goroutine of its own, where a panic would end the process.
//
// Gradients follow one rule throughout: zero times anything is zero, NaN and infinity included. A position that nothing
// attends to, and that no loss looks at, can hold any value without it reaching a gradient.
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

// op is the one implementation of gorgonia.SDOp here. The functions that make ops fill it in; run and grad hold what
// the op does.
type op struct {
	name   string // the operation and every attribute: what is printed, and what is hashed
	salt   int    // of the hash, where another node has that of the name alone
	inputs G.Nodes
	shapes []tensor.Shape // of the inputs
	out    hm.Type
	shape  tensor.Shape // of the output
	diff   []bool       // which inputs have a gradient; nil for none

	run  func(in []G.Value) (G.Value, error)
	grad func(in G.Nodes, out, grad *G.Node) (G.Nodes, error)

	env    *Env     // that of its graph
	output *lease   // the output's memory; nil if the op owns it for good
	fills  []*lease // what run fills, the output's among them
	saved  []*lease // what run reads that the op of one of its inputs filled, beside the output
	reads  []*lease // all that run reads, set by Buffers
	ran    uint64   // the last run of the Buffers that it was in

	shared any    // what a joint op's parts have in common
	layer  string // what an error calls the op, if that isn't its name; two ops that differ in it alone are one
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
		if r := recover(); r != nil { // a mistake in this package: the VM's caller couldn't recover from it
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

// newOp returns an op that fills one tensor of dtype F and the given shape. fill is handed the output's elements, which
// may hold anything.
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

// buffer is a tensor that an op fills, made when it is first needed.
type buffer[F kernel.Float] struct {
	lease
	shape tensor.Shape
	data  []F
	dense *tensor.Dense
}

func newBuffer[F kernel.Float](shape tensor.Shape) *buffer[F] {
	b := &buffer[F]{lease: lease{bytes: shape.TotalSize() * int(unsafe.Sizeof(F(0)))}, shape: shape, dense: &tensor.Dense{}}
	b.bind = func(words []uint64) { // the tensor stays where it is, as nodes point to it
		b.data, *b.dense = nil, tensor.Dense{}
		if words != nil {
			b.data = unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(words))), shape.TotalSize())
			*b.dense = *tensor.New(tensor.WithShape(shape...), tensor.WithBacking(b.data))
		}
	}
	return b
}

// slice returns the buffer's elements: in the memory that the op has taken, or else in memory of its own.
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

// joint adds ops that compute several tensors of dtype F in one go, such as the gradients of an op's inputs: the first
// node does the work, and each of the others depends on it and hands out its part. Of the buffers that fill has beside
// the outputs, work are for that run of it alone, and saved were filled by an input's op; nil counts as none.
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
			defer clear(out) // holding on to memory that Buffers have let go of would keep it
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
	// Gorgonia hands back an equal node if the graph has one: the buffers that are filled are that one's.
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
