package train

import (
	"fmt"
	"runtime"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/layers"
)

// A trainer computes the gradients of training steps: each the mean of its micro-batches', weighted by what they count
// for. They are added up as a binary tree over the numbers of the micro-batches, which splits n of them at the largest
// power of two below n. So the sum is the same bits however many workers there are.
type trainer struct {
	learnables G.Nodes       // the parameters, in the order in which the first graph bound them
	model      []G.ValueGrad // the same with the gradient of the last step, for a solver

	team  *team
	parts [][]int // the parameters that each process steps, by their places in model

	micro   int       // micro-batches in a step, at most
	share   int       // those of one process
	workers []*worker // each takes one micro-batch at a time

	sums []partial         // of the step under way: neighbours, the first of them first
	free [][]*tensor.Dense // buffers for gradients
	mean []*meanGradient   // what model holds, if there are several micro-batches

	received [][]*tensor.Dense // what other processes send: each the gradients of this one's part
}

// partial is the sum of some neighbouring micro-batches.
type partial struct {
	micro  int // how many
	sums   sums
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

// newTrainer makes the workers, of which the first builds a graph for a batch. A worker has its share of the cores, of
// which one alone has all.
func newTrainer(f *fit, like Batch) (*trainer, error) {
	t := &trainer{team: f.team, micro: max(f.MicroBatches, 1)}
	t.share = t.micro / t.team.size
	cores := runtime.GOMAXPROCS(0)
	workers := f.Workers
	if workers == 0 {
		workers = cores
	}
	workers = min(workers, t.share)
	for i := range workers {
		b := layers.Build{Mode: layers.Training, Seed: f.Seed, Buffers: &layers.Buffers{}}
		if workers > 1 {
			b.Cores = max(1, (i+1)*cores/workers-i*cores/workers)
		}
		t.workers = append(t.workers, &worker{problem: f.Problem, build: b, micro: t.micro > 1})
	}
	first, err := t.workers[0].graph(like)
	if err != nil {
		return nil, err
	}
	for _, w := range t.workers {
		w.first = first
	}
	t.learnables = first.learnables
	for _, n := range t.learnables {
		m := &meanGradient{param: n}
		t.mean, t.model = append(t.mean, m), append(t.model, m)
	}
	t.parts = parts(t.learnables, t.team.size)
	return t, nil
}

// run computes the gradient of a step, counted from 0 over all epochs, and returns what its batches count for. The
// batches are this process's; weight is that of the step, in which so many processes have batches.
func (t *trainer) run(step int, batches []Batch, weight float64, processes int) (sums, error) {
	if t.micro == 1 {
		g, s, err := t.workers[0].run(uint64(step), batches[0], 1)
		if err == nil {
			t.model = g.model
		}
		return s, err
	}
	for _, s := range t.sums {
		t.release(s)
	}
	t.sums = t.sums[:0]
	var err error
	for first := 0; first < len(batches) && err == nil; first += len(t.workers) {
		if first > 0 {
			t.keep()
		}
		err = t.round(step*t.micro+t.team.rank*t.share, first, batches, weight)
	}
	for len(t.sums) > 1 && err == nil {
		t.merge()
	}
	return t.reduce(processes, err)
}

// round runs a worker on each of some micro-batches, from the first on, and adds up what they return in the order of
// their numbers, which are counted from a number on. weight is that of the step. When it returns, all workers have.
func (t *trainer) round(number, first int, batches []Batch, weight float64) error {
	batches = batches[first:min(first+len(t.workers), len(batches))]
	got, errs := make([]partial, len(batches)), make([]error, len(batches))
	var wg sync.WaitGroup
	for i, b := range batches {
		work := func() {
			errs[i] = apart.Call(func() error { // which may call Loss
				g, s, err := t.workers[i].run(uint64(number+first+i), b, b.Weight/weight)
				if err != nil {
					return err
				}
				got[i].sums = s
				got[i].grads, err = g.gradients(b.Weight > 0)
				return err
			})
		}
		if i == len(batches)-1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
	for i, s := range got {
		if errs[i] != nil {
			return fmt.Errorf("micro-batch %d: %w", (number+first+i)%t.micro, errs[i])
		}
		s.micro = 1
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
	add(a.grads, b.grads)
	a.micro += b.micro
	a.sums.add(b.sums)
	t.release(b)
	t.sums = t.sums[:n-1]
}

// add adds tensors b to tensors a.
func add(a, b []*tensor.Dense) {
	for i, g := range a {
		if g.Dtype() == tensor.Float32 {
			kernel.Add(0, g.Float32s(), g.Float32s(), b[i].Float32s())
		} else {
			kernel.Add(0, g.Float64s(), g.Float64s(), b[i].Float64s())
		}
	}
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
			copy(to[i].Raw, g.Raw) // of one dtype
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

// A worker runs batches, one at a time, each on the graph of its shapes, which is built when it is first met. Its
// graphs share their memory.
type worker struct {
	problem Problem
	build   layers.Build // what a graph's Build begins as
	micro   bool         // batches are micro-batches, whose gradients are multiplied by their share of the step
	first   *graph       // of all workers; further ones must be like it
	graphs  []*graph
}

// graph returns the graph for batches like one.
func (w *worker) graph(like Batch) (*graph, error) {
	for _, g := range w.graphs {
		if g.fits(like) {
			return g, nil
		}
	}
	b := w.build
	g, err := newGraph(w.problem, &b, like, w.micro)
	if err != nil {
		return nil, err
	}
	if err := g.sameAs(w.first); err != nil {
		return nil, err
	}
	w.graphs = append(w.graphs, g)
	return g, nil
}

func (w *worker) run(number uint64, b Batch, share float64) (*graph, sums, error) {
	g, err := w.graph(b)
	if err != nil {
		return nil, sums{}, err
	}
	s, err := g.run(number, b, share)
	return g, s, err
}
