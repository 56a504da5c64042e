package layers

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
)

// A Function is a graph to evaluate, built once and called often: values in, copies out. Any number of goroutines may
// call it at once, but not while something writes the parameters, as training does. A call that finds no graph free
// builds one, and leaves it for the next; all of them share the parameters. A graph has Buffers, and so holds little
// more than the largest of its values. What they hold is freed with the Function. Make one with NewFunction.
type Function struct {
	build func(b *Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)

	mu   sync.Mutex
	free []*program
}

// NewFunction makes a Function of a graph: build adds nodes to g, and returns those that take a call's values and those
// that a call returns the values of. It may set fields of b before b is used, such as CaptureWeights or Cores.
//
// build is called here, and once for each further graph, then perhaps by several goroutines at once. It must return the
// same every time. Its error is returned as it is; its panic and a graph that doesn't compile are errors, too.
func NewFunction(build func(b *Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)) (*Function, error) {
	f := &Function{build: build}
	p, err := f.take()
	if err != nil {
		return nil, err
	}
	f.leave(p)
	return f, nil
}

// Call runs the graph on a value for each input, of its dtype and shape and stored by rows, and returns a value for
// each output. The values given are copied, and neither changed nor kept; those returned are the caller's own, of the
// shapes of their nodes. That of a scalar has shape (), and its Data is a number. A value of shape (), as tensor.New
// makes of a slice of one number, may stand for any shape of one element.
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

// take returns a program that no other call uses.
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

	// read is what the machine reads the outputs into. It is allocated separately: a pointer cycle through the machine,
	// which has a finalizer, is never freed.
	read []G.Value
	vm   G.VM
}

// newProgram builds a graph and compiles it.
func newProgram(build func(b *Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error)) (p *program, err error) {
	defer func() {
		if x := recover(); x != nil { // Gorgonia's way to say that a graph doesn't compile
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

// ownMemory gives an input a tensor, which set copies to. A scalar has none.
func ownMemory(n *G.Node) error {
	if n.IsScalar() {
		return nil
	}
	if err := memory.Check(memory.Product(memory.Product(n.Shape()...), int(n.Dtype().Size()))); err != nil {
		return err
	}
	return G.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.Of(n.Dtype())))
}

// check checks what build returned.
func (p *program) check(g *G.ExprGraph) error {
	if len(p.outputs) == 0 {
		return errors.New("there are no outputs: return the nodes that a call is to return the values of")
	}
	for i, n := range p.outputs {
		if n.Graph() != g {
			return fmt.Errorf("output %d must be a node of the graph that is given, got %v", i, n)
		}
	}
	for i, n := range p.inputs {
		if n.Graph() != g || !n.IsVar() {
			return fmt.Errorf("input %d must be an input node of the graph that is given, got %v", i, n)
		}
		if slices.Contains(p.inputs[:i], n) {
			return fmt.Errorf("input %q is returned twice, or shares name, dtype and shape with another one, so that Gorgonia made them one node", n.Name())
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
		if v.DataOrder().IsColMajor() { // which tensor.Copy takes for rows
			return fmt.Errorf("input %q must be stored by rows, got a tensor that is stored by columns", n.Name())
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

// run runs the graph, and returns the outputs' values.
func (p *program) run() ([]*tensor.Dense, error) {
	clear(p.read)       // as a Read clones what it reads into nil, and writes over anything else
	defer clear(p.read) // what is returned isn't kept
	defer p.vm.Reset()  // however this run ends, the next one must start at the beginning
	if err := p.vm.RunAll(); err != nil {
		return nil, err
	}
	out := make([]*tensor.Dense, len(p.read))
	for i, v := range p.read {
		shape := p.outputs[i].Shape()
		dense, ok := v.(*tensor.Dense)
		if !ok { // a scalar
			dense = tensor.New(tensor.FromScalar(v.Data()))
		}
		if !slices.Equal(dense.Shape(), shape) { // as of a batch of one, whose values Gorgonia may make scalars
			if err := dense.Reshape(shape...); err != nil {
				return nil, fmt.Errorf("output %d: %w", i, err)
			}
		}
		out[i] = dense
	}
	return out, nil
}
