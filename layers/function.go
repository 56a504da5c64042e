package layers

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// A Function is a graph for evaluation that you can call. Several goroutines may call it at the same time, but not
// while the parameters change, as in training. If a call finds all graphs of the Function in use, it builds a new
// graph, which later calls reuse. All graphs share the parameters. Each graph uses Buffers, so it needs little more
// memory than its largest values. This memory is freed with the Function. If the parameters don't change
// any more, Params.KeepPanels may make calls faster. Make one with NewFunction.
type Function struct {
	build func(b *Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)

	mu   sync.Mutex
	free []*program
}

// NewFunction makes a Function. build(b, g) adds nodes to g, and returns the input nodes, which receive the values of a
// call, and the output nodes, whose values a call returns. Before that, build may set fields of b, such as
// CaptureWeights or Cores.
//
// NewFunction calls build once. Call calls build for each further graph, possibly from several goroutines at the same
// time. All calls of build must make the same graph. NewFunction returns an error of build unchanged. It also returns
// an error if build panics or if the graph doesn't compile.
func NewFunction(build func(b *Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)) (*Function, error) {
	f := &Function{build: build}
	p, err := f.take()
	if err != nil {
		return nil, err
	}
	f.leave(p)
	return f, nil
}

// Call runs the graph with one value for each input and returns one value for each output. Each value must have its
// input's dtype and shape and be stored by rows. A value of shape (), which tensor.New makes from a slice of one
// number, fits any input with one element. Call copies its arguments and doesn't keep them. The caller owns the
// results. A result has the shape of its output node; a scalar has shape (), and its Data is a number.
func (f *Function) Call(values ...*tensor.Dense) ([]*tensor.Dense, error) {
	p, err := f.take()
	if err != nil {
		return nil, err
	}
	defer f.leave(p)
	if err := p.set(values); err != nil {
		return nil, fmt.Errorf("function: %w", err)
	}
	out, err := p.run()
	if err != nil {
		return nil, fmt.Errorf("function: %w", err)
	}
	return out, nil
}

// take returns a program that no other call is using.
func (f *Function) take() (*program, error) {
	f.mu.Lock()
	if last := len(f.free) - 1; last >= 0 {
		defer f.mu.Unlock()
		p := f.free[last]
		f.free = f.free[:last]
		return p, nil
	}
	f.mu.Unlock()
	return newProgram(f.build)
}

func (f *Function) leave(p *program) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, p)
}

// A program is a graph with its machine.
type program struct {
	inputs, outputs G.Nodes

	// read receives the outputs' values. It is allocated separately because the machine has a finalizer, and a pointer
	// cycle through it would never be freed.
	read []G.Value
	vm   G.VM
}

// newProgram builds a graph and compiles it.
func newProgram(build func(b *Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)) (p *program, err error) {
	defer func() {
		if x := recover(); x != nil { // Gorgonia panics if a graph doesn't compile
			p, err = nil, fmt.Errorf("function: building the graph: %v", x)
		}
	}()
	g := G.NewGraph()
	p = &program{}
	if p.inputs, p.outputs, err = build(&Build{Buffers: &Buffers{}}, g); err != nil {
		return nil, err
	}
	if err := p.check(g); err != nil {
		return nil, fmt.Errorf("function: %w", err)
	}
	for _, n := range p.inputs {
		if err := ownMemory(n); err != nil {
			return nil, fmt.Errorf("function: input %q of shape %v: %w", n.Name(), n.Shape(), err)
		}
	}
	p.read = make([]G.Value, len(p.outputs))
	for i, n := range p.outputs {
		G.Read(n, &p.read[i])
	}
	if err := CheckGraph(g); err != nil {
		return nil, fmt.Errorf("function: %w", err)
	}
	p.vm = G.NewTapeMachine(g)
	return p, nil
}

// ownMemory gives an input a tensor of its own, to which set copies values. A scalar needs no tensor.
func ownMemory(n *G.Node) error {
	if n.IsScalar() {
		return nil
	}
	if err := memory.Check(memory.Product(memory.Product(n.Shape()...), int(n.Dtype().Size()))); err != nil {
		return err
	}
	return G.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.Of(n.Dtype())))
}

// check checks the nodes that build returned.
func (p *program) check(g *G.ExprGraph) error {
	if len(p.outputs) == 0 {
		return errors.New("there are no outputs: build must return at least one output node")
	}
	for i, n := range p.outputs {
		if n.Graph() != g {
			return fmt.Errorf("output %d must be a node of the given graph, got %v", i, n)
		}
	}
	for i, n := range p.inputs {
		if n.Graph() != g || !n.IsVar() {
			return fmt.Errorf("input %d must be an input node of the given graph, got %v", i, n)
		}
		if slices.Contains(p.inputs[:i], n) {
			return fmt.Errorf("input %q is returned twice, or Gorgonia merged it with another input of the same name, dtype and shape", n.Name())
		}
	}
	for _, n := range g.AllNodes() {
		if n.IsVar() && n.Value() == nil && !slices.Contains(p.inputs, n) {
			return fmt.Errorf("input %q has no value: return it among the inputs", n.Name())
		}
	}
	return nil
}

// set copies a call's values to the inputs.
func (p *program) set(values []*tensor.Dense) error {
	if len(values) != len(p.inputs) {
		return fmt.Errorf("there are %d inputs, got %d values", len(p.inputs), len(values))
	}
	for i, n := range p.inputs {
		v := values[i]
		fits := slices.Equal(v.Shape(), n.Shape()) || v.IsScalar() && n.Shape().TotalSize() == 1
		if v.Dtype() != n.Dtype() || !fits {
			return fmt.Errorf("input %q must be %v of shape %v, got %v of shape %v", n.Name(), n.Dtype(), n.Shape(), v.Dtype(), v.Shape())
		}
		if v.DataOrder().IsColMajor() { // tensor.Copy would copy the columns to rows
			return fmt.Errorf("input %q must be stored by rows, got a tensor stored by columns", n.Name())
		}
		var err error
		if n.IsScalar() {
			err = G.Let(n, v.ScalarValue())
		} else {
			err = tensor.Copy(n.Value().(*tensor.Dense), v)
		}
		if err != nil {
			return fmt.Errorf("input %q: %w", n.Name(), err)
		}
	}
	return nil
}

// run runs the graph and returns the outputs' values.
func (p *program) run() ([]*tensor.Dense, error) {
	clear(p.read)       // gorgonia.Read allocates if the destination is nil, and otherwise overwrites it
	defer clear(p.read) // the caller owns the values
	defer p.vm.Reset()  // the next run must start at the beginning, even after an error
	if err := ops.Run(p.vm); err != nil {
		return nil, err
	}
	out := make([]*tensor.Dense, len(p.read))
	for i, v := range p.read {
		shape := p.outputs[i].Shape()
		dense, ok := v.(*tensor.Dense)
		if !ok { // a scalar
			dense = tensor.New(tensor.FromScalar(v.Data()))
		}
		if !slices.Equal(dense.Shape(), shape) { // Gorgonia may return a scalar for a batch of one
			if err := dense.Reshape(shape...); err != nil {
				return nil, fmt.Errorf("output %d: %w", i, err)
			}
		}
		out[i] = dense
	}
	return out, nil
}
