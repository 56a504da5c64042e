package train

import (
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// A graph is a Problem's loss, and its metrics, for batches of one list of shapes, with its machine.
type graph struct {
	build      *layers.Build
	inputs     G.Nodes
	learnables G.Nodes       // the parameters, in a training graph
	model      []G.ValueGrad // the same, for a solver
	share      *G.Node       // what the gradients are multiplied by: a micro-batch's share of the step; nil if there is one
	metrics    []Metric
	vm         G.VM

	// read is what the machine reads, of the loss and of what the metrics need. It is allocated separately: Gorgonia's
	// machines have finalizers, and a cycle of pointers through what has one is never freed.
	read map[*G.Node]*G.Value
	loss *G.Node
}

// newGraph builds the loss for batches like one and, in a training graph, its gradients. In a graph of micro-batches
// they are multiplied by a share.
func newGraph(p Problem, b *layers.Build, like Batch, micro bool) (r *graph, err error) {
	defer func() {
		if x := recover(); x != nil { // Gorgonia's way to say that a graph doesn't compile
			err = fmt.Errorf("building the graph: %v", x)
		}
	}()
	training := b.Mode == layers.Training // Loss may change it, as for no dropout
	g := G.NewGraph()
	r = &graph{build: b, read: map[*G.Node]*G.Value{}}
	for i, v := range like.Values {
		r.inputs = append(r.inputs, input(g, fmt.Sprintf("input %d", i), v))
	}
	if r.loss, r.metrics, err = p.Loss(b, slices.Clone(r.inputs)); err != nil {
		return nil, fmt.Errorf("building the graph: %w", err)
	}
	if r.loss == nil || !r.loss.IsScalar() || r.loss.Graph() != g {
		return nil, fmt.Errorf("the loss must be a scalar node of the inputs' graph, got %v", r.loss)
	}
	if err := checkMetrics(r.metrics, g); err != nil {
		return nil, err
	}
	if err := p.checkInputs(b, g, r.inputs); err != nil {
		return nil, err
	}
	r.reads(r.loss)
	for _, m := range r.metrics {
		r.reads(m.Sum)
		r.reads(m.Count)
	}
	if training {
		for _, n := range b.Learnables() {
			if !slices.Contains(b.Fixed, n) {
				r.learnables = append(r.learnables, n)
			}
		}
		if len(r.learnables) == 0 {
			return nil, fmt.Errorf("the loss depends on no parameter: bind them with the Build that Loss is given")
		}
		grads, err := r.differentiate(micro)
		if err != nil {
			return nil, fmt.Errorf("taking the gradient: the loss must depend on every parameter that it binds and that isn't Frozen, by ops that have derivatives: %w", err)
		}
		r.model = optim.Gradients(r.learnables, grads)
	}
	if err := layers.CheckGraph(g); err != nil {
		return nil, err
	}
	r.vm = G.NewTapeMachine(g)
	return r, nil
}

// input adds an input node of a value's dtype and shape.
func input(g *G.ExprGraph, name string, v *tensor.Dense) *G.Node {
	s := v.Shape()
	if s.IsScalar() {
		return G.NewScalar(g, v.Dtype(), G.WithName(name))
	}
	return G.NewTensor(g, v.Dtype(), s.Dims(), G.WithShape(s...), G.WithName(name))
}

// reads has the machine read a node, which may be nil.
func (r *graph) reads(n *G.Node) {
	if n != nil && r.read[n] == nil {
		r.read[n] = new(G.Value)
		G.Read(n, r.read[n])
	}
}

// checkInputs checks that what numbers a graph holds are fed, learned or declared fixed: others would be neither
// trained nor saved, in silence.
func (p Problem) checkInputs(b *layers.Build, g *G.ExprGraph, inputs G.Nodes) error {
	known := slices.Concat(inputs, b.Fixed)
	own := map[uintptr]bool{}
	for _, q := range p.Params.All() {
		own[q.Value.Uintptr()] = true
	}
	for _, n := range b.Learnables() {
		if own[n.Value().Uintptr()] {
			known = append(known, n)
		}
	}
	for _, n := range g.AllNodes() {
		if !n.IsVar() || slices.Contains(known, n) {
			continue
		}
		if n.Value() == nil {
			return fmt.Errorf("the loss reads %q, which has no value: use the inputs that Loss is given", n.Name())
		}
		if dt := n.Dtype(); dt == tensor.Float32 || dt == tensor.Float64 {
			return fmt.Errorf("the loss reads numbers of %q, which is neither an input that Loss is given nor a parameter of the Problem's Params: "+
				"make it with Params.New and bind it with the Build that Loss is given if it is to be learned; add it to that Build's Fixed if not", n.Name())
		}
	}
	return nil
}

// shareName is that of the input node of a micro-batch's share.
const shareName = "share of the step"

// differentiate adds the gradients of the loss by the parameters, multiplied by the share if there is to be one.
func (r *graph) differentiate(share bool) (G.Nodes, error) {
	if !share {
		return G.Grad(r.loss, r.learnables...)
	}
	g := r.loss.Graph()
	if len(g.ByName(shareName)) > 0 {
		return nil, fmt.Errorf("the graph has a node named %q, which training adds: give it another name", shareName)
	}
	r.share = G.NewScalar(g, r.loss.Dtype(), G.WithName(shareName))
	return G.Backpropagate(G.Nodes{r.loss}, G.Nodes{r.share}, r.learnables)
}

// sameAs checks that a graph has the metrics of another one and, if both train, its parameters in their order, by which
// solvers know them. There may be no other one.
func (r *graph) sameAs(first *graph) error {
	if first == nil {
		return nil
	}
	if !slices.EqualFunc(r.metrics, first.metrics, func(a, b Metric) bool { return a.Name == b.Name && (a.Of == nil) == (b.Of == nil) }) {
		return fmt.Errorf("every graph of the loss must have the same metrics in the same order: have Loss return them so each time that it is called")
	}
	if r.learnables != nil && !slices.EqualFunc(r.learnables, first.learnables, func(a, b *G.Node) bool { return a.Name() == b.Name() }) {
		return fmt.Errorf("every graph of the loss must have the same parameters in the same order: have Loss bind them so each time that it is called")
	}
	return nil
}

// fits reports whether the graph is for batches like one.
func (r *graph) fits(b Batch) bool {
	return slices.EqualFunc(r.inputs, b.Values, func(n *G.Node, v *tensor.Dense) bool {
		return n.Dtype() == v.Dtype() && slices.Equal(n.Shape(), v.Shape())
	})
}

// run feeds the graph a batch that fits it and returns what it counts for in means. The number is the run's, which
// decides what dropout drops. share is that of the batch in its step.
func (r *graph) run(number uint64, b Batch, share float64) (sums, error) {
	for i, v := range b.Values {
		var value any = v
		if v.IsScalar() {
			value = v.ScalarValue()
		}
		if err := G.Let(r.inputs[i], value); err != nil {
			return sums{}, err
		}
	}
	if r.share != nil {
		if err := G.Let(r.share, scalar(r.share.Dtype(), share)); err != nil {
			return sums{}, err
		}
	}
	r.build.Runs = number
	r.vm.Reset()
	if err := r.vm.RunAll(); err != nil {
		return sums{}, err
	}
	return r.sums(b.Weight)
}

// sums returns what the last run, of a batch of that weight, counts for.
func (r *graph) sums(weight float64) (sums, error) {
	loss, err := r.number(r.loss)
	s := sums{Weight: number(weight)}
	if weight > 0 {
		s.Loss = number(loss * weight)
	}
	for _, m := range r.metrics {
		sum, errSum := r.number(m.Sum)
		count, errCount := weight, error(nil)
		if m.Count != nil {
			count, errCount = r.number(m.Count)
		} else if sum *= weight; weight == 0 {
			sum = 0
		}
		err = errors.Join(err, errSum, errCount)
		s.Metrics = append(s.Metrics, [2]number{number(sum), number(count)})
	}
	return s, err
}

// number returns the number that the last run left in a scalar node.
func (r *graph) number(n *G.Node) (float64, error) {
	switch x := (*r.read[n]).Data().(type) {
	case float32:
		return float64(x), nil
	case float64:
		return x, nil
	}
	return 0, fmt.Errorf("a loss or metric must be a float32 or float64, got %T", (*r.read[n]).Data())
}

// gradients returns the gradient that the last run left of each parameter, or zeros if nothing counts in its batch: a
// mean over nothing may be NaN, which a share of 0 doesn't make 0. They may be written to.
func (r *graph) gradients(counts bool) ([]*tensor.Dense, error) {
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
		if !counts {
			d.Zero()
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
