package train

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/layers"
)

// A crew computes the gradients of micro-batches with the workers of one process. It adds them up in a binary tree,
// which splits n micro-batches at the largest power of two below n. So the sum has the same bits for any number of
// workers.
type crew struct {
	learnables G.Nodes   // the parameters, in the order in which the first graph bound them
	micro      int       // maximum number of micro-batches in a step
	share      int       // micro-batches of this process
	first      int       // number of the first of them in the step
	workers    []*worker // each runs one micro-batch at a time

	sums []partial         // partial sums of the current step, in order
	free [][]*tensor.Dense // unused buffers for gradients
}

// partial is the sum over some successive micro-batches.
type partial struct {
	micro  int // number of micro-batches
	sums   sums
	grads  []*tensor.Dense
	buffer bool // whether grads belong to the crew; otherwise they belong to a graph, whose next run overwrites them
}

// newCrew makes the workers of one process of a Group. The first worker builds a graph for a
// batch like the given one, and all other graphs must have the same metrics and learnables. Several workers share the
// cores; a single worker has all of them.
func newCrew(p Problem, c Config, options RunOptions, rank, processes int, like batch) (*crew, error) {
	t := &crew{micro: max(c.MicroBatches, 1)}
	t.share = t.micro / processes
	t.first = rank * t.share
	cores := runtime.GOMAXPROCS(0)
	workers := min(cmp.Or(options.Workers, cores), t.share)
	for i := range workers {
		b := layers.Build{Training: true, Seed: options.Seed, Precision: c.Precision, Buffers: &layers.Buffers{}}
		if workers > 1 {
			b.Cores = max(1, (i+1)*cores/workers-i*cores/workers)
		}
		t.workers = append(t.workers, &worker{problem: p, build: b, micro: t.micro > 1})
	}
	first, err := t.workers[0].graph(like)
	if err != nil {
		return nil, err
	}
	for _, w := range t.workers {
		w.first = first
	}
	t.learnables = first.learnables
	return t, nil
}

// run computes the gradients of a step, counted from 0 over all epochs, and leaves their sum as the only element of
// t.sums. The argument batches holds this process's batches; if it is empty, there is no sum. The argument weight is
// the weight of the whole step.
func (t *crew) run(step int, batches []batch, weight float64) error {
	for _, s := range t.sums {
		t.release(s)
	}
	t.sums = t.sums[:0]
	for first := 0; first < len(batches); first += len(t.workers) {
		if first > 0 {
			t.keep()
		}
		if err := t.round(step*t.micro+t.first, first, batches, weight); err != nil {
			return err
		}
	}
	for len(t.sums) > 1 {
		t.merge()
	}
	return nil
}

// round runs one worker on each of some micro-batches, from index first on, and adds their results to t.sums in order.
// The run of batch i has the number number+i. The argument weight is the weight of the whole step. All workers have
// finished when round returns.
func (t *crew) round(number, first int, batches []batch, weight float64) error {
	got := make([]partial, len(t.workers))
	n, err := t.together(first, batches, func(w *worker, i int) error {
		b := batches[first+i]
		g, s, err := w.run(uint64(number+first+i), b, b.weight/weight)
		if err != nil {
			return err
		}
		got[i].sums = s
		got[i].grads, err = g.gradients(b.weight > 0)
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range got[:n] {
		s.micro = 1
		t.sums = append(t.sums, s)
		for n := len(t.sums); n > 1 && t.sums[n-2].micro == t.sums[n-1].micro; n-- {
			t.merge()
		}
	}
	return nil
}

// together calls do for the batches from index first on, each with its own worker, at the same time. The argument i of
// do is the index of the worker; the batch has the index first+i. The result n is the number of workers with a batch.
func (t *crew) together(first int, batches []batch, do func(w *worker, i int) error) (n int, err error) {
	n = min(len(t.workers), len(batches)-first)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		work := func() { errs[i] = apart.Call(func() error { return do(t.workers[i], i) }) } // do may call Loss
		if i == n-1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return n, fmt.Errorf("micro-batch %d: %w", t.first+first+i, err)
		}
	}
	return n, nil
}

// weigh sets the weights of this process's batches of a step to the Counts of their losses.
func (t *crew) weigh(batches []batch) error {
	if t.micro == 1 {
		return t.workers[0].weigh(&batches[0])
	}
	for first := 0; first < len(batches); first += len(t.workers) {
		if _, err := t.together(first, batches, func(w *worker, i int) error { return w.weigh(&batches[first+i]) }); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the last partial sum to the previous one.
func (t *crew) merge() {
	n := len(t.sums)
	a, b := &t.sums[n-2], t.sums[n-1]
	add(a.grads, b.grads)
	a.micro += b.micro
	a.sums.add(b.sums)
	t.release(b)
	t.sums = t.sums[:n-1]
}

// add adds each tensor of b to the tensor of a with the same index.
func add(a, b []*tensor.Dense) {
	for i, g := range a {
		if g.Dtype() == tensor.Float32 {
			kernel.Add(0, g.Float32s(), g.Float32s(), b[i].Float32s())
		} else {
			kernel.Add(0, g.Float64s(), g.Float64s(), b[i].Float64s())
		}
	}
}

// keep copies gradients that belong to graphs, because the next round overwrites them.
func (t *crew) keep() {
	for i := range t.sums {
		s := &t.sums[i]
		if s.buffer {
			continue
		}
		var buffer []*tensor.Dense
		if n := len(t.free); n > 0 {
			buffer, t.free = t.free[n-1], t.free[:n-1]
		} else {
			for _, g := range s.grads {
				kept := tensor.New(tensor.WithShape(g.Shape()...), tensor.Of(g.Dtype()))
				memory.Huge(kept.Raw)
				buffer = append(buffer, kept)
			}
		}
		for i, g := range s.grads {
			copy(buffer[i].Raw, g.Raw) // same dtype
		}
		s.grads, s.buffer = buffer, true
	}
}

// release returns a partial sum's buffer to t.free.
func (t *crew) release(s partial) {
	if s.buffer {
		t.free = append(t.free, s.grads)
	}
}

// A worker runs one batch at a time. It builds a graph for each list of shapes when the first batch with these shapes
// arrives. Its graphs share their memory.
type worker struct {
	problem Problem
	build   layers.Build // initial Build of each graph
	micro   bool         // whether gradients are multiplied by the micro-batch's share of the step
	first   *graph       // the first graph of all workers: see sameAs
	graphs  []*graph
}

// graph returns the graph for batches with the same shapes as like.
func (w *worker) graph(like batch) (*graph, error) {
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

// weigh sets the weight of a batch to the Count of its loss.
func (w *worker) weigh(b *batch) error {
	g, err := w.graph(*b)
	if err != nil {
		return err
	}
	return g.weigh(b)
}

func (w *worker) run(number uint64, b batch, share float64) (*graph, sums, error) {
	g, err := w.graph(b)
	if err != nil {
		return nil, sums{}, err
	}
	s, err := g.run(number, b, share)
	return g, s, err
}
