package train

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// runner is a graph of a Problem's loss, with its machine.
type runner struct {
	build      *layers.Build
	inputs     G.Nodes
	learnables G.Nodes       // the parameters, in a training graph
	model      []G.ValueGrad // the same, for a solver
	share      *G.Node       // what the gradients are multiplied by: a micro-batch's share of the step; nil if there is one
	vm         G.VM

	// loss is read by the machine. It is a cell of its own: Gorgonia's machines have finalizers, and a cycle of
	// pointers through what has one is never freed.
	loss *G.Value
}

// newRunner builds the loss for batches of a size and, in a training graph, its gradients.
func newRunner(p Problem, b *layers.Build, size int) (r *runner, err error) {
	defer func() {
		if x := recover(); x != nil { // Gorgonia's way to say that a graph doesn't compile
			err = fmt.Errorf("train: building the graph: %v", x)
		}
	}()
	g := G.NewGraph()
	loss, inputs, err := p.Loss(b, g, size)
	if err != nil {
		return nil, fmt.Errorf("train: building the graph: %w", err)
	}
	if loss == nil || !loss.IsScalar() {
		return nil, fmt.Errorf("train: the loss must be a scalar node, got %v", loss)
	}
	if err := p.checkInputs(b, g, inputs); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	r = &runner{build: b, inputs: inputs, loss: new(G.Value)}
	G.Read(loss, r.loss)
	if b.Mode == layers.Training {
		for _, n := range b.Learnables() {
			if !slices.Contains(b.Fixed, n) {
				r.learnables = append(r.learnables, n)
			}
		}
		if len(r.learnables) == 0 {
			return nil, fmt.Errorf("train: the loss depends on no parameter: bind them with the Build that Loss is given")
		}
		grads, err := r.differentiate(loss, size < p.BatchSize)
		if err != nil {
			return nil, fmt.Errorf("train: taking the gradient: %w", err)
		}
		r.model = Gradients(r.learnables, grads)
	}
	if err := layers.CheckGraph(g); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	r.vm = G.NewTapeMachine(g)
	return r, nil
}

// checkInputs checks that what numbers a graph holds are fed, learned or declared fixed: others would be neither
// trained nor saved, in silence.
func (p Problem) checkInputs(b *layers.Build, g *G.ExprGraph, inputs G.Nodes) error {
	known := slices.Concat(inputs, b.Fixed)
	for _, n := range b.Learnables() {
		if q := p.Params.Get(n.Name()); q != nil && q.Value.Uintptr() == n.Value().Uintptr() {
			known = append(known, n)
		}
	}
	for _, n := range g.AllNodes() {
		if !n.IsVar() || n.Value() == nil || slices.Contains(known, n) {
			continue
		}
		if dt := n.Dtype(); dt == tensor.Float32 || dt == tensor.Float64 {
			return fmt.Errorf("the loss reads numbers of %q, which is neither an input that Loss returns nor a parameter of the Problem's Params: "+
				"make it with Params.New and Build.Bind if it is to be learned; add it to the Build's Fixed if not", n.Name())
		}
	}
	return nil
}

// shareName is that of the input node of a micro-batch's share.
const shareName = "share of the step"

// differentiate adds the gradients of the loss by the parameters, multiplied by the share if there is to be one.
func (r *runner) differentiate(loss *G.Node, share bool) (G.Nodes, error) {
	if !share {
		return G.Grad(loss, r.learnables...)
	}
	if len(loss.Graph().ByName(shareName)) > 0 {
		return nil, fmt.Errorf("the graph has a node named %q, which training adds: give it another name", shareName)
	}
	r.share = G.NewScalar(loss.Graph(), loss.Dtype(), G.WithName(shareName))
	return G.Backpropagate(G.Nodes{loss}, G.Nodes{r.share}, r.learnables)
}

// run feeds the graph a batch and returns the loss. The number is the run's, which decides what dropout drops.
func (r *runner) run(number uint64, batch Batch) (float64, error) {
	if len(batch.Values) != len(r.inputs) {
		return 0, fmt.Errorf("the graph has %d inputs, the batch %d values", len(r.inputs), len(batch.Values))
	}
	for i, v := range batch.Values {
		n := r.inputs[i]
		if v == nil || v.Dtype() != n.Dtype() || !v.Shape().Eq(n.Shape()) {
			return 0, fmt.Errorf("input %q must be %v of shape %v, got %v", n.Name(), n.Dtype(), n.Shape(), describe(v))
		}
		if err := G.Let(n, v); err != nil {
			return 0, err
		}
	}
	if r.share != nil {
		if err := G.Let(r.share, scalar(r.share.Dtype(), batch.Weight)); err != nil {
			return 0, err
		}
	}
	r.build.Runs = number
	r.vm.Reset()
	if err := r.vm.RunAll(); err != nil {
		return 0, err
	}
	switch x := (*r.loss).Data().(type) {
	case float32:
		return float64(x), nil
	case float64:
		return x, nil
	}
	return 0, fmt.Errorf("the loss must be a float32 or float64, got %T", (*r.loss).Data())
}

// gradients returns the gradient that the last run left of each parameter. They may be written to.
func (r *runner) gradients() ([]*tensor.Dense, error) {
	grads := make([]*tensor.Dense, len(r.model))
	for i, p := range r.model {
		g, err := p.Grad()
		if err != nil {
			return nil, err
		}
		d, ok := g.(*tensor.Dense)
		if !ok || d.Dtype() != tensor.Float32 && d.Dtype() != tensor.Float64 {
			return nil, fmt.Errorf("the gradient of %s must be a float32 or float64 tensor to be added up over micro-batches, got %T of %v", r.learnables[i].Name(), g, g.Dtype())
		}
		grads[i] = d
	}
	return grads, nil
}

// scalar returns a number of a dtype.
func scalar(dt tensor.Dtype, x float64) any {
	if dt == tensor.Float32 {
		return float32(x)
	}
	return x
}

func describe(v *tensor.Dense) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("%v of shape %v", v.Dtype(), v.Shape())
}
