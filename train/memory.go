package train

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"runtime/metrics"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/text"
)

const (
	programBytes = 25 << 20 // approximate memory outside the heap: code, stacks and the runtime's own data
	nodeBytes    = 2 << 10  // approximate memory of a node, with its part of the machine but without its value
)

// checkMemory estimates the memory of training and passes it to OnMemory. If the machine has less memory, it returns an
// error.
func (f *fit) checkMemory() error {
	bytes, err := f.memory()
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if bytes > memory.Limit() {
		return fmt.Errorf("train: training needs about %s of memory, but there is only %s: choose smaller batches, more MicroBatches, fewer Workers or a smaller model", text.Bytes(bytes), memory.LimitText())
	}
	if f.OnMemory != nil {
		f.OnMemory(bytes)
	}
	return nil
}

// memory estimates the peak resident memory of the process in bytes. It measures what is in use already: the program's
// data, the parameters, the solver's memory, and one graph each for training and validation. It computes the rest from
// the graphs. Without OnMemory, it collects garbage only if the estimate with garbage exceeds the limit.
func (f *fit) memory() (int, error) {
	t := f.train
	g := t.workers[0].first
	shared, own, err := ops.Plan(g.loss.Mean.Graph())
	if err != nil {
		return 0, err
	}
	// Plan all workers' memory for the largest bucket: a worker that starts with a short bucket allocates only once.
	for _, w := range t.workers[1:] {
		b := w.build
		b.Env().Buffers.Reserve(w.first.build.Env().Buffers)
	}
	graphs := f.plan.graphs(f.microSize(), len(t.workers))
	need := len(t.workers)*(shared+own) + (graphs-1)*nodeBytes*len(g.loss.Mean.Graph().AllNodes()) + t.gradientBytes()
	if f.average != nil && f.average.Values == nil {
		need += valueBytes(t.learnables)
	}
	batches := t.share * valueBytes(g.inputs)
	if f.validation != nil {
		g := f.validation.worker.graphs[0]
		both, own, err := ops.Plan(g.loss.Mean.Graph())
		if err != nil {
			return 0, err
		}
		need += both - shared + own + (f.validation.plan.graphs(f.validation.plan.size, 1)-1)*nodeBytes*len(g.loss.Mean.Graph().AllNodes())
		batches += valueBytes(g.inputs)
	}
	need += 3 * batches // one in use, one ready and one in preparation: see feed
	for _, p := range f.kept {
		need += len(p.Value.Raw) // the best values
	}
	state, err := f.stateBytes(memory.Limit() - need)
	if err != nil {
		return 0, err
	}
	if f.Checkpoint != "" && t.team.rank == 0 { // the first process also collects the memory of the other solvers
		need += (t.team.size - 1) * state
	}
	total := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		used := need + max(int(m.HeapAlloc), state)
		return programBytes + used + int(float64(used)*garbage())
	}
	bytes := total() // counts the heap's garbage too
	if f.OnMemory != nil || bytes > memory.Limit() {
		runtime.GC()
		bytes = total()
	}
	return bytes, nil
}

// stateBytes makes the solver's memory for this process's part of the parameters, and returns its size in bytes. Once
// the size exceeds limit, it stops and returns an estimate for the whole part.
func (f *fit) stateBytes(limit int) (int, error) {
	if f.solver == nil {
		return 0, nil
	}
	t := f.train
	state, seen, bytes := 0, 0, 0
	for _, i := range t.part() {
		bytes += valueBytes(t.learnables[i : i+1])
	}
	for _, i := range t.part() {
		if state > limit {
			return int(float64(state) / float64(seen) * float64(bytes)), nil
		}
		memories, err := f.solver.State(t.model, i)
		if err != nil {
			return 0, err
		}
		for _, m := range memories {
			state += len(m.Value.Raw)
		}
		seen += valueBytes(t.learnables[i : i+1])
	}
	return state, nil
}

// graphs returns the approximate number of graphs that batches of the given size need: for each bucket, one per worker
// and one for a smaller batch at the end.
func (p *plan) graphs(size, workers int) (n int) {
	for _, b := range p.buckets {
		n += min(len(b)/size, workers) + min(len(b)%p.size%size, 1)
	}
	return n
}

// valueBytes returns the bytes of the nodes' values.
func valueBytes(nodes G.Nodes) (bytes int) {
	for _, n := range nodes {
		bytes += n.Shape().TotalSize() * int(n.Dtype().Size())
	}
	return bytes
}

// gradientBytes returns the maximum bytes of gradients outside graphs. They are partial sums and gradients from other
// processes. After n micro-batches, the number of partial sums is the number of one bits in n.
func (t *trainer) gradientBytes() int {
	buffers := 0
	for n := len(t.workers); n < t.share; n += len(t.workers) {
		buffers = max(buffers, bits.OnesCount(uint(n)))
	}
	bytes := valueBytes(t.learnables)
	return buffers*bytes + bytes*(t.team.size-1)/t.team.size
}

// garbage returns the estimated ratio of garbage to live memory in the heap: half of what GOGC allows. Long trainings
// reach this ratio; short ones have hardly any garbage.
func garbage() float64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if percent := s[0].Value; percent.Kind() == metrics.KindUint64 && percent.Uint64() < math.MaxUint64 {
		return min(float64(percent.Uint64()), 100) / 200
	}
	return 0
}
