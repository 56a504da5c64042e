// Package ops implements the operations that Heed adds to Gorgonia. Each op is a gorgonia.SDOp, built for fixed shapes
// and a fixed dtype. Its symbolic derivative is in the same file.
//
// Every op owns the tensor that it returns and fills it again in every run, so a run allocates almost nothing. Because
// of this state, a graph with these ops may have only one live VM at a time. With Buffers, other ops may reuse the
// tensor's memory after all its readers have run. Ops never write to their inputs. They return errors and don't panic:
// RunAll runs them on a goroutine of its own, where a panic would end the process.
//
// All gradients follow one rule: zero times any number is zero, even zero times NaN or infinity. So if no query attends
// to a position and no loss reads it, its value never reaches a gradient, even if it is NaN.
package ops

import (
	"cmp"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"slices"
	"unsafe"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// op is this package's only type of gorgonia.SDOp. The functions that make ops set run and grad.
type op struct {
	name   string // the operation and all its attributes, for printing and hashing
	salt   int    // added to the hash if it isn't 0: see apply
	inputs G.Nodes
	shapes []tensor.Shape // shapes of the inputs
	out    hm.Type
	shape  tensor.Shape // shape of the output

	run  func(values []G.Value) G.Value                           // panics with an inputError if an input is wrong
	wrt  int                                                      // number of leading inputs that have a gradient
	grad func(inputs G.Nodes, out, grad *G.Node) (G.Nodes, error) // the gradients of these inputs; those that DiffWRT leaves out may be nil

	env    *Env     // the Env of its graph
	output *lease   // the output's memory; nil if it never comes from Buffers
	fills  []*lease // buffers that run fills, including the output
	saved  []*lease // buffers that run reads, besides the inputs; an op of an input fills them
	after  int      // number of inputs, the last ones, that run doesn't read: their ops only run before this op
	reads  []*lease // all buffers that run reads; set by Buffers
	ran    uint64   // number of the last run of Buffers that included this op

	adds   bool    // whether grad adds rest to the gradient of the first input
	rest   *G.Node // the gradient of the first input in its later uses: see Following
	first  *op     // the op that adds this op's gradient of the first input; nil if Gorgonia adds it
	handed bool    // whether first has got this gradient since the last call of DiffWRT
	solved bool    // whether SymDiff has been called

	shared any    // state that several ops share: see joint and attention
	lookup bool   // whether it looks up rows of its first input, a table
	tied   bool   // whether its second input, a weight, may be such a table: see tie
	layer  string // prefix of errors, if not name; it isn't part of the hash
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

func (o *op) Do(values ...G.Value) (v G.Value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case inputError:
			v, err = nil, fmt.Errorf("%s: %w", cmp.Or(o.layer, o.name), r.error)
		default: // a mistake in this package; the VM's caller couldn't recover from it
			v, err = nil, fmt.Errorf("%s: %v", o.name, r)
		}
		if err != nil {
			err = opError{err}
		}
	}()
	for i, v := range values {
		if v != nil && !sameLayout(v.Shape(), o.shapes[i]) {
			return nil, fmt.Errorf("%s: the graph was built for an input of shape %v, got %v", o.name, o.shapes[i], v.Shape())
		}
	}
	b := o.env.Buffers
	if err := b.begin(o.env, o); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(o.layer, o.name), err)
	}
	v = o.run(values)
	b.end(o)
	return v, nil
}

// An opError is an error of op.Do.
type opError struct{ error }

func (e opError) Unwrap() error { return e.error }

// Run runs a machine that has no BindDualValues. If one of this package's ops fails, Run returns the op's error alone.
// Gorgonia's error begins with the instruction, which means nothing to users.
func Run(vm G.VM) error {
	err := runAll(vm)
	var e opError
	if contextual, ok := err.(interface{ Err() error }); ok && errors.As(contextual.Err(), &e) { // it has no Unwrap
		return e.error
	}
	return err
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
	wrt := make([]bool, inputs)
	for i := range o.wrt {
		wrt[i] = o.env.wants(o.inputs[i]) && !(o.tied && i == 1 && o.env.tie(o))
	}
	if o.handed { // Gorgonia calls DiffWRT after SymDiff, to learn which gradients to add
		wrt[0], o.handed = false, false
	}
	return wrt
}

func (o *op) SymDiff(inputs G.Nodes, out, grad *G.Node) (G.Nodes, error) {
	if o.grad == nil {
		return nil, fmt.Errorf("%s has no derivative (Heed's gradients are of first order)", o.name)
	}
	if !slices.Contains(o.DiffWRT(len(inputs)), true) { // Gorgonia calls SymDiff for the nodes that Grad gets, too
		return make(G.Nodes, len(inputs)), nil
	}
	grads, err := o.grad(inputs, out, grad)
	if o.solved = true; err == nil && o.first != nil && !o.first.solved && o.first.rest == nil && grads[0] != nil {
		o.first.rest, o.handed = grads[0], true
	}
	return append(grads, make(G.Nodes, len(inputs)-len(grads))...), err
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

// ByDtype returns f32 if v holds float32, else f64.
func ByDtype[T any](v interface{ Dtype() tensor.Dtype }, f32, f64 T) T {
	if v.Dtype() == tensor.Float32 {
		return f32
	}
	return f64
}

// newOp returns an op whose output is one tensor of dtype F and the given shape. The function fill must set all
// elements of out, which may hold any values before.
func newOp[F kernel.Float](name string, shape tensor.Shape, fill func(out []F, values []G.Value)) *op {
	buf := newBuffer[F](shape)
	return &op{
		name: name, shape: shape, out: typeOf(dtypeOf[F](), shape), output: &buf.lease, fills: []*lease{&buf.lease},
		run: func(values []G.Value) G.Value {
			fill(buf.slice(), values)
			return buf.dense
		},
	}
}

// newInts returns an op whose output is an int tensor of the given shape. The function fill must set all elements of
// out.
func newInts(name string, shape tensor.Shape, fill func(out []int, values []G.Value)) *op {
	ints := make([]int, volume(shape))
	out := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(ints))
	return &op{name: name, shape: shape, out: typeOf(tensor.Int, shape), run: func(values []G.Value) G.Value {
		fill(ints, values)
		return out
	}}
}

// newScalar returns an op whose output is a scalar of dtype F.
func newScalar[F kernel.Float](name string, compute func(values []G.Value) F) *op {
	return &op{name: name, shape: tensor.ScalarShape(), out: dtypeOf[F](), run: func(values []G.Value) G.Value {
		x := compute(values)
		if x32, ok := any(x).(float32); ok {
			return G.NewF32(x32)
		}
		return G.NewF64(float64(x))
	}}
}

// one returns a node as the gradients of an op with one gradient.
func one(n *G.Node, err error) (G.Nodes, error) { return G.Nodes{n}, err }

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

// slice returns the buffer's elements. They lie in the slab that begin has assigned or, without Buffers, in the
// buffer's own slab.
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

// joint adds ops that together compute several tensors of dtype F, such as the gradients of an op's inputs. The op of
// the first wanted node calls fill, which computes all tensors. The other ops depend on it and return one tensor each.
// A tensor that isn't wanted has no node, and fill may use its memory as scratch memory. If its shape is nil too, it
// has no memory, and fill gets a nil slice. At least one tensor must be wanted. The buffer work is scratch memory for
// fill. The op of the last input fills the buffer saved, which fill reads instead of this input. Both may be nil.
func joint[F kernel.Float](e *Env, name string, want []bool, shapes []tensor.Shape, inputs []*G.Node, work, saved *buffer[F], fill func(out [][]F, values []G.Value)) (G.Nodes, error) {
	bufs := make([]*buffer[F], len(shapes))
	var fills []*lease
	for i, s := range shapes {
		if s != nil {
			bufs[i] = newBuffer[F](s)
			fills = append(fills, &bufs[i].lease)
		}
	}
	main := slices.Index(want, true)
	if slices.Contains(want, false) {
		name += fmt.Sprint(want)
	}
	out, result := make([][]F, len(bufs)), bufs[main]
	o := &op{
		name: name, shape: result.shape, out: typeOf(dtypeOf[F](), result.shape), output: &result.lease, fills: fills, shared: bufs,
		run: func(values []G.Value) G.Value {
			for i, b := range bufs {
				if b != nil {
					out[i] = b.slice()
				}
			}
			defer clear(out) // a reference would keep memory that Buffers have released
			fill(out, values)
			return result.dense
		},
	}
	if work != nil {
		o.fills = append(o.fills, &work.lease)
	}
	if saved != nil {
		o.saved, o.after = append(o.saved, &saved.lease), 1
	}
	first, err := e.apply(o, inputs...)
	if err != nil {
		return nil, err
	}
	// If the graph has an equal node, apply returns that node: then use its buffers.
	if owner, ok := first.Op().(*op); ok {
		bufs = owner.shared.([]*buffer[F])
	}
	nodes := make(G.Nodes, len(bufs))
	nodes[main] = first
	for i, b := range bufs {
		if i == main || !want[i] {
			continue
		}
		part := &op{
			name: fmt.Sprintf("%s.%d", name, i), shape: b.shape, out: typeOf(dtypeOf[F](), b.shape), output: &b.lease, after: 1, shared: b,
			run: func([]G.Value) G.Value { return b.dense },
		}
		n, err := e.apply(part, first)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}
