package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// A graph computes a Problem's loss and metrics for batches of one list of shapes. It includes the machine that runs
// it.
type graph struct {
	build      *layers.Build
	inputs     G.Nodes
	learnables G.Nodes       // the trained parameters, in a training graph
	model      []G.ValueGrad // the learnables with their gradients, for a solver
	share      *G.Node       // factor of the gradients: the micro-batch's share of the step; nil if a step has one micro-batch
	metrics    []Metric
	vm         G.VM
	counter    G.VM // computes only the Count of the loss; nil if there is none

	// read holds the values of the nodes that the machines read: the loss, and the sums and counts of metrics. It is
	// allocated separately: Gorgonia's machines have finalizers, and Go never frees a cycle of pointers that includes
	// an object with a finalizer.
	read map[*G.Node]*G.Value
	loss layers.Loss
}

// newGraph builds the loss for batches with the same shapes as like. In a training graph, it adds the gradients. If
// micro is true, the gradients are multiplied by the micro-batch's share of the step.
func newGraph(p Problem, b *layers.Build, like batch, micro bool) (r *graph, err error) {
	defer func() {
		if x := recover(); x != nil { // Gorgonia panics if a graph is invalid
			err = fmt.Errorf("building the graph: %v", x)
		}
	}()
	training := b.Training // Loss may change it, for example to turn dropout off
	g := G.NewGraph()
	r = &graph{build: b, read: map[*G.Node]*G.Value{}}
	for i, v := range like.values {
		r.inputs = append(r.inputs, input(g, fmt.Sprintf("input %d", i), v))
	}
	if r.loss, r.metrics, err = p.Loss(b, slices.Clone(r.inputs)); err != nil {
		return nil, fmt.Errorf("building the graph: %w", err)
	}
	mean, count := r.loss.Mean, r.loss.Count
	if mean == nil || !mean.IsScalar() || mean.Graph() != g {
		return nil, fmt.Errorf("the Mean of the loss must be a scalar node in the graph of the inputs, got %v", mean)
	}
	if count != nil && (!count.IsScalar() || count.Graph() != g) {
		return nil, fmt.Errorf("the Count of the loss must be a scalar node in the graph of the inputs, or nil for the number of examples, got %v", count)
	}
	if err := checkMetrics(r.metrics, g); err != nil {
		return nil, err
	}
	b.Fixed = append(b.Fixed, r.inputs...) // nobody reads their gradients
	if err := p.checkInputs(b, g); err != nil {
		return nil, err
	}
	r.reads(mean)
	r.reads(count)
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
			return nil, p.noneLearned(b)
		}
		grads, err := r.differentiate(micro)
		if err != nil {
			return nil, fmt.Errorf("computing the gradients: the loss must depend on every parameter that it binds and that isn't Frozen, through ops that have derivatives: %w", err)
		}
		r.model = optim.Gradients(r.learnables, grads)
	}
	if err := layers.CheckGraph(g); err != nil {
		return nil, err
	}
	r.vm = G.NewTapeMachine(g)
	if count != nil {
		r.counter = G.NewTapeMachine(g.SubgraphRoots(count))
	}
	return r, nil
}

// input adds an input node with the dtype and shape of v.
func input(g *G.ExprGraph, name string, v *tensor.Dense) *G.Node {
	s := v.Shape()
	if s.IsScalar() {
		return G.NewScalar(g, v.Dtype(), G.WithName(name))
	}
	return G.NewTensor(g, v.Dtype(), s.Dims(), G.WithShape(s...), G.WithName(name))
}

// reads makes the machine read a node, which may be nil.
func (r *graph) reads(n *G.Node) {
	if n != nil && r.read[n] == nil {
		r.read[n] = new(G.Value)
		G.Read(n, r.read[n])
	}
}

// checkInputs returns an error if a node of the graph holds numbers, but isn't an input, a parameter of the Problem, or
// listed in b.Fixed. Such numbers would be neither trained nor saved, without a warning.
func (p Problem) checkInputs(b *layers.Build, g *G.ExprGraph) error {
	known := slices.Clone(b.Fixed)
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
			return fmt.Errorf("the loss reads %q, which has no value: use the inputs passed to Loss", n.Name())
		}
		if dt := n.Dtype(); dt == tensor.Float32 || dt == tensor.Float64 {
			return fmt.Errorf("the loss reads numbers from %q, which is neither an input of Loss nor a parameter of the Problem's Params: "+
				"to train it, make it with Params.New and bind it with the Build passed to Loss; otherwise add it to the Build's Fixed", n.Name())
		}
	}
	return nil
}

// noneLearned returns the error for a loss that trains no parameter.
func (p Problem) noneLearned(b *layers.Build) error {
	for _, q := range p.Params.All() {
		if q.Frozen && slices.ContainsFunc(b.Fixed, func(n *G.Node) bool { return n.Value() != nil && n.Value().Uintptr() == q.Value.Uintptr() }) {
			return errors.New("all parameters of the loss are frozen, so there is nothing to train: leave one of them unfrozen, or compute the loss with Evaluate")
		}
	}
	return errors.New("the loss depends on no parameter: bind parameters with the Build passed to Loss")
}

// shareName is the name of the input node for a micro-batch's share of the step.
const shareName = "share of the step"

// differentiate adds the gradients of the loss with respect to the learnables. If share is true, they are multiplied by
// the node r.share.
func (r *graph) differentiate(share bool) (G.Nodes, error) {
	if !share {
		return G.Grad(r.loss.Mean, r.learnables...)
	}
	g := r.loss.Mean.Graph()
	if len(g.ByName(shareName)) > 0 {
		return nil, fmt.Errorf("the graph has a node named %q, which Fit adds: give your node another name", shareName)
	}
	r.share = G.NewScalar(g, r.loss.Mean.Dtype(), G.WithName(shareName))
	return G.Backpropagate(G.Nodes{r.loss.Mean}, G.Nodes{r.share}, r.learnables)
}

// sameAs returns an error if r and first have different metrics. If both train, it also returns an error if they have
// different learnables, or the same in a different order: solvers identify parameters by this order. If first is nil,
// there is no error.
func (r *graph) sameAs(first *graph) error {
	if first == nil {
		return nil
	}
	if !slices.EqualFunc(r.metrics, first.metrics, func(a, b Metric) bool {
		return a.Name == b.Name && (a.Of == nil) == (b.Of == nil) && (a.Value == nil) == (b.Value == nil) && a.size() == b.size()
	}) {
		return fmt.Errorf("every graph of the loss must have the same metrics in the same order, with vectors of the same length: return them in that order in every call of Loss")
	}
	if (r.loss.Count == nil) != (first.loss.Count == nil) {
		return errors.New("every graph of the loss must have a Count, or none: return the same in every call of Loss")
	}
	if r.learnables != nil && !slices.EqualFunc(r.learnables, first.learnables, func(a, b *G.Node) bool { return a.Name() == b.Name() }) {
		return fmt.Errorf("every graph of the loss must have the same parameters in the same order: bind them in that order in every call of Loss")
	}
	return nil
}

// fits reports whether the graph can run b: its inputs have the same dtypes and shapes.
func (r *graph) fits(b batch) bool {
	return slices.EqualFunc(r.inputs, b.values, func(n *G.Node, v *tensor.Dense) bool {
		return n.Dtype() == v.Dtype() && slices.Equal(n.Shape(), v.Shape())
	})
}

// let gives the inputs the values of a batch that fits the graph.
func (r *graph) let(b batch) error {
	for i, v := range b.values {
		var value any = v
		if v.IsScalar() {
			value = v.ScalarValue()
		}
		if err := G.Let(r.inputs[i], value); err != nil {
			return err
		}
	}
	return nil
}

// weigh sets the weight of a batch that fits the graph to the Count of its loss, if there is one.
func (r *graph) weigh(b *batch) error {
	if r.counter == nil {
		return nil
	}
	if err := r.let(*b); err != nil {
		return err
	}
	r.counter.Reset()
	err := ops.Run(r.counter)
	r.build.Env().Buffers.End()
	if err != nil {
		return err
	}
	if b.weight, err = r.number(r.loss.Count); err == nil && (!(b.weight >= 0) || math.IsInf(b.weight, 1)) {
		err = fmt.Errorf("the Count of the loss must be at least 0 and finite, got %v", b.weight)
	}
	return err
}

// run runs the graph on a batch that fits it, and returns the batch's sums. The argument number is the number of the
// run; it selects the elements that dropout drops. The argument share is the batch's share of the step.
func (r *graph) run(number uint64, b batch, share float64) (sums, error) {
	if err := r.let(b); err != nil {
		return sums{}, err
	}
	if r.share != nil {
		if err := G.Let(r.share, scalar(r.share.Dtype(), share)); err != nil {
			return sums{}, err
		}
	}
	r.build.Runs = number
	r.vm.Reset()
	if err := ops.Run(r.vm); err != nil {
		return sums{}, err
	}
	return r.sums(b.weight)
}

// sums returns the sums of the last run, whose batch has the given weight.
func (r *graph) sums(weight float64) (sums, error) {
	loss, err := r.number(r.loss.Mean)
	s := sums{Weight: number(weight)}
	if weight > 0 {
		s.Loss = number(loss * weight)
	}
	for _, m := range r.metrics {
		if m.Value != nil {
			vector, errVector := r.vector(m.Sum)
			s.Metrics, err = append(s.Metrics, vector), errors.Join(err, errVector)
			continue
		}
		sum, errSum := r.number(m.Sum)
		count, errCount := weight, error(nil)
		if m.Count != nil {
			count, errCount = r.number(m.Count)
		} else if sum *= weight; weight == 0 {
			sum = 0
		}
		err = errors.Join(err, errSum, errCount)
		s.Metrics = append(s.Metrics, []number{number(sum), number(count)})
	}
	return s, err
}

// number returns the value of a scalar node in the last run.
func (r *graph) number(n *G.Node) (float64, error) {
	switch x := (*r.read[n]).Data().(type) {
	case float32:
		return float64(x), nil
	case float64:
		return x, nil
	}
	return 0, fmt.Errorf("a loss, its Count or a metric must be a float32 or float64, got %T", (*r.read[n]).Data())
}

// vector returns a copy of a vector node's elements in the last run.
func (r *graph) vector(n *G.Node) ([]number, error) {
	d, ok := (*r.read[n]).(*tensor.Dense)
	if ok && !ops.InRows(d) {
		d, ok = d.Materialize().(*tensor.Dense)
	}
	vector := make([]number, 0, n.Shape()[0])
	if ok {
		switch x := d.Data().(type) {
		case []float32:
			for _, x := range x {
				vector = append(vector, number(x))
			}
		case []float64:
			for _, x := range x {
				vector = append(vector, number(x))
			}
		}
	}
	if len(vector) != cap(vector) {
		return nil, fmt.Errorf("the Sum of a metric must be %d float32s or float64s, got %T of shape %v", cap(vector), *r.read[n], (*r.read[n]).Shape())
	}
	return vector, nil
}

// gradients returns the gradient of each parameter in the last run. The caller may change them. If counts is false,
// nothing in the batch counts, and gradients sets them to zero. They may be NaN then, as the mean over nothing is, and
// NaN times a share of 0 isn't 0.
func (r *graph) gradients(counts bool) ([]*tensor.Dense, error) {
	grads := make([]*tensor.Dense, len(r.model))
	for i, p := range r.model {
		g, err := p.Grad()
		if err != nil {
			return nil, err
		}
		d, ok := g.(*tensor.Dense)
		if !ok || d.Dtype() != tensor.Float32 && d.Dtype() != tensor.Float64 {
			return nil, fmt.Errorf("the gradient of %s must be a float32 or float64 tensor, because gradients of micro-batches are added up, got a %T of dtype %v", r.learnables[i].Name(), g, g.Dtype())
		}
		if !counts {
			d.Zero()
		}
		grads[i] = d
	}
	return grads, nil
}

// scalar returns x as a value of dtype dt.
func scalar(dt tensor.Dtype, x float64) any {
	if dt == tensor.Float32 {
		return float32(x)
	}
	return x
}
