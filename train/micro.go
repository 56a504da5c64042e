package train

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/layers"
)

// A trainer computes the gradients of training steps: each the mean of its micro-batches', weighted by what they count
// for. They are added up as a binary tree over the numbers of the micro-batches, which splits n of them at the largest
// power of two below n. So the sum is the same bits however many workers there are.
type trainer struct {
	learnables G.Nodes       // the parameters
	model      []G.ValueGrad // the same with the gradient of the last step, for a solver

	micro   int       // micro-batches in a step
	size    int       // examples in each
	workers []*runner // each takes one micro-batch at a time

	sums []partial         // of the step under way: neighbours, the first of them first
	free [][]*tensor.Dense // buffers for gradients
	mean []*meanGradient   // what model holds, if there are several micro-batches
}

// partial is the sum of some neighbouring micro-batches.
type partial struct {
	micro  int // how many
	loss   float64
	grads  []*tensor.Dense
	buffer bool // grads are a buffer of the trainer's; otherwise a graph's own, until it runs again
}

// meanGradient is a parameter with the mean gradient of a step.
type meanGradient struct {
	param *G.Node
	grad  *tensor.Dense
}

func (m *meanGradient) Name() string           { return m.param.Name() }
func (m *meanGradient) Value() G.Value         { return m.param.Value() }
func (m *meanGradient) Grad() (G.Value, error) { return m.grad, nil }

// newTrainer builds a graph for each worker. A worker has its share of the cores, of which one alone has all.
func newTrainer(p Problem, c Config) (*trainer, error) {
	t := &trainer{micro: max(p.MicroBatches, 1)}
	t.size = p.BatchSize / t.micro
	cores := runtime.GOMAXPROCS(0)
	workers := c.Workers
	if workers == 0 {
		workers = cores
	}
	workers = min(workers, t.micro)
	for i := range workers {
		b := &layers.Build{Mode: layers.Training, Seed: c.Seed}
		if workers > 1 {
			b.Cores = max(1, (i+1)*cores/workers-i*cores/workers)
		}
		r, err := newRunner(p, b, t.size)
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.EqualFunc(r.learnables, t.workers[0].learnables, sameName) {
			return nil, fmt.Errorf("train: each worker's graph must have the same parameters in the same order: have Loss bind them so each time that it is called")
		}
		t.workers = append(t.workers, r)
	}
	t.learnables, t.model = t.workers[0].learnables, t.workers[0].model
	if t.micro > 1 {
		t.model = nil
		for _, n := range t.learnables {
			m := &meanGradient{param: n}
			t.mean, t.model = append(t.mean, m), append(t.model, m)
		}
	}
	return t, nil
}

func sameName(a, b *G.Node) bool { return a.Name() == b.Name() }

// run computes the gradient of a step, counted from 0 over all epochs, and returns its loss.
func (t *trainer) run(step int, b Batch) (float64, error) {
	if t.micro == 1 {
		return t.workers[0].run(uint64(step), b)
	}
	parts, err := t.cut(b)
	if err != nil {
		return 0, err
	}
	for _, s := range t.sums {
		t.release(s)
	}
	t.sums = t.sums[:0]
	first := step * t.micro // its number among all micro-batches
	for len(parts) > 0 {
		done := min(len(t.workers), len(parts))
		if err := t.round(first, parts[:done]); err != nil {
			return 0, err
		}
		first, parts = first+done, parts[done:]
		if len(parts) > 0 {
			t.keep()
		}
	}
	for len(t.sums) > 1 {
		t.merge()
	}
	for i, g := range t.sums[0].grads {
		t.mean[i].grad = g
	}
	return t.sums[0].loss, nil
}

// round runs a worker on each of some micro-batches, the first of them of that number, and adds up what they return in
// the order of their numbers. When it returns, all workers have.
func (t *trainer) round(first int, parts []Batch) error {
	got, errs := make([]partial, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		work := func() {
			if got[i].loss, errs[i] = t.workers[i].run(uint64(first+i), part); errs[i] == nil {
				got[i].grads, errs[i] = t.workers[i].gradients()
			}
		}
		if i == len(parts)-1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
	for i, s := range got {
		if errs[i] != nil {
			return fmt.Errorf("micro-batch %d: %w", first%t.micro+i, errs[i])
		}
		s.micro, s.loss = 1, s.loss*parts[i].Weight
		t.sums = append(t.sums, s)
		for n := len(t.sums); n > 1 && t.sums[n-2].micro == t.sums[n-1].micro; n-- {
			t.merge()
		}
	}
	return nil
}

// merge adds the last partial sum to the one before.
func (t *trainer) merge() {
	n := len(t.sums)
	a, b := &t.sums[n-2], t.sums[n-1]
	for i, g := range a.grads {
		if g.Dtype() == tensor.Float32 {
			kernel.Add(0, g.Float32s(), g.Float32s(), b.grads[i].Float32s())
		} else {
			kernel.Add(0, g.Float64s(), g.Float64s(), b.grads[i].Float64s())
		}
	}
	a.micro += b.micro
	a.loss += b.loss
	t.release(b)
	t.sums = t.sums[:n-1]
}

// keep copies what graphs own, which the next round overwrites.
func (t *trainer) keep() {
	for i := range t.sums {
		s := &t.sums[i]
		if s.buffer {
			continue
		}
		var to []*tensor.Dense
		if n := len(t.free); n > 0 {
			to, t.free = t.free[n-1], t.free[:n-1]
		} else {
			for _, g := range s.grads {
				to = append(to, tensor.New(tensor.WithShape(g.Shape()...), tensor.Of(g.Dtype())))
			}
		}
		for i, g := range s.grads {
			if g.Dtype() == tensor.Float32 {
				copy(to[i].Float32s(), g.Float32s())
			} else {
				copy(to[i].Float64s(), g.Float64s())
			}
		}
		s.grads, s.buffer = to, true
	}
}

// release makes a partial sum's buffer free.
func (t *trainer) release(s partial) {
	if s.buffer {
		t.free = append(t.free, s.grads)
	}
}

// cut returns a step's micro-batches. The weight of each is its share of the step's.
func (t *trainer) cut(b Batch) ([]Batch, error) {
	inputs := t.workers[0].inputs
	if len(b.Values) != len(inputs) {
		return nil, fmt.Errorf("the graph has %d inputs, the batch %d values", len(inputs), len(b.Values))
	}
	parts := make([]Batch, t.micro)
	for i, v := range b.Values {
		n := inputs[i]
		want := n.Shape() // in a micro-batch
		whole := want.Clone()
		if len(whole) > 0 {
			whole[0] *= t.micro
		}
		if v == nil || v.Dtype() != n.Dtype() || !v.Shape().Eq(want) && !v.Shape().Eq(whole) {
			return nil, fmt.Errorf("input %q must be %v of shape %v, cut for %d micro-batches, or %v, the same for each; got %v", n.Name(), n.Dtype(), whole, t.micro, want, describe(v))
		}
		for m := range parts {
			part := v
			if !v.Shape().Eq(want) {
				var err error
				if part, err = rows(v, m*want[0], want); err != nil {
					return nil, fmt.Errorf("input %q: %w", n.Name(), err)
				}
			}
			parts[m].Values = append(parts[m].Values, part)
		}
	}
	return parts, weigh(parts, b, t.size)
}

// rows returns a view of a value, of that shape, from a place on its first axis.
func rows(v *tensor.Dense, from int, shape tensor.Shape) (*tensor.Dense, error) {
	view, err := v.Slice(tensor.S(from, from+shape[0]))
	if err != nil {
		return nil, err
	}
	part := view.(*tensor.Dense)
	return part, part.Reshape(shape...) // as slicing drops an axis of 1
}

// weigh gives each micro-batch its share of the step's weight, which is that of its examples.
func weigh(parts []Batch, step Batch, size int) error {
	if step.Weights == nil {
		for i := range parts {
			parts[i].Weight = 1 / float64(len(parts))
		}
		return nil
	}
	if len(step.Weights) != len(parts)*size {
		return fmt.Errorf("a batch must have a weight for each of its %d examples, got %d Weights", len(parts)*size, len(step.Weights))
	}
	var sum float64
	for i, w := range step.Weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return fmt.Errorf("the weight of an example must be 0 or more, got %v for example %d", w, i)
		}
		parts[i/size].Weight += w
		sum += w
	}
	if sum == 0 || math.Abs(sum-step.Weight) > 1e-9*sum {
		return fmt.Errorf("the Weights of a batch must add up to its Weight, above 0, got %v and %v", sum, step.Weight)
	}
	for i := range parts {
		parts[i].Weight /= sum
	}
	return nil
}
