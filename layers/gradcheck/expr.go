package gradcheck

import (
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// An expression is a cost with its inputs and their gradients, ready to run. It has two programs: one for the cost
// alone, used for the differences, and one for the cost and the gradients.
type expression struct {
	inputs []*cells
	before []snapshot // the values of all inputs of the cost

	costRun, gradRun G.VM
	alone, together  G.Value   // the cost computed by costRun and by gradRun
	grads            []G.Value // one for each input; nil without a differentiable path to the cost

	graph *G.ExprGraph
	reads G.Nodes // nodes added to the graph; close removes them
}

// newExpression takes the gradient of cost if it hasn't been taken yet, and compiles the two programs.
func newExpression(cost *G.Node, wrt G.Nodes) (*expression, error) {
	if err := validate(cost, wrt); err != nil {
		return nil, err
	}
	x := &expression{graph: cost.Graph(), grads: make([]G.Value, len(wrt))}
	compiled := false
	defer func() {
		if !compiled { // after an error or a panic of Gorgonia
			x.removeReads()
		}
	}()
	for _, n := range wrt {
		input, err := newCells(n.Name(), n.Value())
		if err != nil {
			return nil, err
		}
		x.inputs = append(x.inputs, input)
	}
	below := descendants(cost)
	if err := x.snapshot(wrt, below); err != nil {
		return nil, err
	}
	grads, err := gradNodes(cost, wrt, below)
	if err != nil {
		return nil, err
	}
	costAlone, costTogether := x.read(cost, &x.alone), x.read(cost, &x.together)
	roots := G.Nodes{costTogether}
	for i, n := range grads {
		if n != nil {
			roots = append(roots, x.read(n, &x.grads[i]))
		}
	}
	// Compile only the nodes that these roots need, and not the other costs and Reads in the graph.
	whole := x.graph.ExactSubgraphRoots(roots...)
	if err := ops.Distinct(whole); err != nil {
		return nil, err
	}
	x.costRun = G.NewTapeMachine(x.graph.ExactSubgraphRoots(costAlone))
	x.gradRun = G.NewTapeMachine(whole)
	compiled = true
	return x, nil
}

var errNoInput = errors.New("there is no input to differentiate")

// validate checks the arguments before anything changes.
func validate(cost *G.Node, wrt G.Nodes) error {
	switch {
	case len(wrt) == 0:
		return errNoInput
	case !cost.IsScalar():
		return fmt.Errorf("the cost must be a scalar, got shape %v: reduce it with Project", cost.Shape())
	case cost.Dtype() != tensor.Float64:
		return fmt.Errorf("the cost must be float64, got %v", cost.Dtype())
	}
	for i, n := range wrt {
		switch {
		case n.Graph() != cost.Graph():
			return fmt.Errorf("%s is not in the cost's graph", n.Name())
		case !n.IsVar():
			return fmt.Errorf("%s is not an input: gradients are taken with respect to input nodes", n.Name())
		case n.Dtype() != tensor.Float64:
			return fmt.Errorf("%s is %v: only float64 can be checked", n.Name(), n.Dtype())
		case slices.Contains(wrt[:i], n):
			return fmt.Errorf("%s is given twice", n.Name())
		}
	}
	return nil
}

// snapshot copies the values of wrt and of all other inputs of the cost. It returns an error if a node in wrt shares
// memory with another input, because a step in one node would then change both.
func (x *expression) snapshot(wrt G.Nodes, below []*G.Node) error {
	reads := slices.Clone(wrt)
	for _, n := range below {
		if n.IsVar() && !slices.Contains(wrt, n) {
			reads = append(reads, n)
		}
	}
	for i, n := range reads {
		v := n.Value()
		if v == nil {
			return fmt.Errorf("%s has no value: bind one with WithValue or Let", n.Name())
		}
		for _, m := range wrt[:min(i, len(wrt))] {
			if w := m.Value(); v.Uintptr() < w.Uintptr()+w.MemSize() && w.Uintptr() < v.Uintptr()+v.MemSize() {
				return fmt.Errorf("%s and %s share memory: a step in one would change both", m.Name(), n.Name())
			}
		}
		if s, ok := newSnapshot(n.Name(), v); ok {
			x.before = append(x.before, s)
		}
	}
	return nil
}

// unchanged returns an error if running the expression has changed an input.
func (x *expression) unchanged() error {
	for _, s := range x.before {
		if !s.same() {
			return fmt.Errorf("running the expression changed its input %s: an op wrote over it "+
				"(gorgonia.Reshape shares its input's memory, and a later op may write there)", s.name)
		}
	}
	return nil
}

// read adds a gorgonia.Read of n to the graph. The Value of n itself may be overwritten, because the machine reuses its
// memory.
func (x *expression) read(n *G.Node, into *G.Value) *G.Node {
	r := G.Read(n, into)
	x.reads = append(x.reads, r)
	return r
}

func (x *expression) removeReads() {
	for _, r := range slices.Backward(x.reads) {
		x.graph.RemoveNode(r)
	}
	x.reads = nil
}

// close restores the inputs and the graph. It returns an error if running the expression has changed an input.
func (x *expression) close() error {
	err := x.unchanged()
	for _, s := range x.before {
		s.restore()
	}
	x.removeReads()
	err = errors.Join(err, x.costRun.Close(), x.gradRun.Close())
	// Machines have finalizers and point to x, which they read into. Unless x drops its pointers to them, they are
	// never freed.
	x.costRun, x.gradRun = nil, nil
	return err
}

// cost computes the cost at the present values of the inputs.
func (x *expression) cost() (float64, error) {
	x.alone = nil // otherwise Read copies into it
	if err := run(x.costRun); err != nil {
		return 0, err
	}
	return scalar(x.alone)
}

// nondeterministic begins the error for an expression that is random or keeps state, or in which an op overwrites the
// input of another op.
const nondeterministic = "the expression is not deterministic"

// gradients returns the gradient of each input in row-major order. It returns an error if two runs differ.
func (x *expression) gradients() ([][]float64, error) {
	cost, grads, err := x.both()
	if err != nil {
		return nil, err
	}
	if !finite(cost) {
		return nil, fmt.Errorf("the cost is %g at the given values", cost)
	}
	cost2, grads2, err := x.both()
	if err != nil {
		return nil, err
	}
	if !sameBits([]float64{cost}, []float64{cost2}) {
		return nil, fmt.Errorf("%s: its cost is %v in one run and %v in the next", nondeterministic, cost, cost2)
	}
	for k, input := range x.inputs {
		if !sameBits(grads[k], grads2[k]) {
			return nil, fmt.Errorf("%s: the gradient of %s differs between two runs", nondeterministic, input.name)
		}
	}
	for range 2 { // the first of these runs follows a run with gradients, the second doesn't
		alone, err := x.cost()
		if err != nil {
			return nil, err
		}
		if !sameBits([]float64{cost}, []float64{alone}) {
			return nil, fmt.Errorf("%s: its cost is %v when computed alone, but %v when computed with the gradients: "+
				"an op keeps state, or overwrites the input of another op", nondeterministic, alone, cost)
		}
	}
	if err := x.unchanged(); err != nil {
		return nil, err
	}
	return grads, nil
}

// both runs the cost and its gradients once.
func (x *expression) both() (cost float64, grads [][]float64, err error) {
	x.together = nil
	clear(x.grads)
	if err := run(x.gradRun); err != nil {
		return 0, nil, err
	}
	if err := x.unchanged(); err != nil {
		return 0, nil, err
	}
	if cost, err = scalar(x.together); err != nil {
		return 0, nil, err
	}
	for k, input := range x.inputs {
		if x.grads[k] == nil { // no differentiable path connects this input to the cost
			grads = append(grads, make([]float64, input.len()))
			continue
		}
		g, err := newCells("the gradient of "+input.name, x.grads[k])
		if err != nil {
			return 0, nil, err
		}
		if !slices.Equal(g.shape, input.shape) && !(g.len() == 1 && input.len() == 1) {
			return 0, nil, fmt.Errorf("%s has shape %v, but %s has shape %v", g.name, g.shape, input.name, input.shape)
		}
		grads = append(grads, g.copy())
	}
	return cost, grads, nil
}

// scalar returns the value of a cost as a number.
func scalar(v G.Value) (float64, error) {
	c, err := newCells("the cost", v)
	if err != nil {
		return 0, err
	}
	if c.len() != 1 {
		return 0, fmt.Errorf("the cost must be a scalar, got a value of shape %v", c.shape)
	}
	return *c.at(0), nil
}

// run runs vm once and resets it. Without a Reset the next run would silently do nothing.
func run(vm G.VM) error {
	defer vm.Reset()
	if err := ops.Run(vm); err != nil {
		return fmt.Errorf("running the expression: %w", err)
	}
	return nil
}
