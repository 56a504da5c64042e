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
	programBytes = 25 << 20 // about what a program takes beside its heap: code, stacks, what the runtime has of its own
	nodeBytes    = 2 << 10  // about what a node takes beside its value, with its part of a machine
)

// checkMemory tells OnMemory what training takes. It is an error if there isn't that much.
func (f *fit) checkMemory() error {
	bytes, err := f.memory()
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if bytes > memory.Limit() {
		return fmt.Errorf("train: this takes about %s of memory, but there is only %s: choose smaller batches, more MicroBatches, fewer Workers or a smaller model", text.Bytes(bytes), memory.LimitText())
	}
	if f.OnMemory != nil {
		f.OnMemory(bytes)
	}
	return nil
}

// memory returns about how many bytes the process will have resident at most. What is there already is measured: the
// program's data, parameters, what the solver remembers, a graph to train and one to validate. What is to come follows
// from the graphs.
func (f *fit) memory() (int, error) {
	t := f.train
	g := t.workers[0].first
	shared, own, err := ops.Plan(g.loss.Graph())
	if err != nil {
		return 0, err
	}
	for _, w := range t.workers[1:] { // lest their memory is made for a short bucket first, and again for this one
		b := w.build
		b.Env().Buffers.Reserve(w.first.build.Env().Buffers)
	}
	graphs := f.plan.graphs(f.microSize(), len(t.workers))
	need := len(t.workers)*(shared+own) + (graphs-1)*nodeBytes*len(g.loss.Graph().AllNodes()) + t.gradientBytes()
	if f.average != nil && f.average.Values == nil {
		need += valueBytes(t.learnables)
	}
	batches := t.share * valueBytes(g.inputs)
	if f.validation != nil {
		g := f.validation.worker.graphs[0]
		both, own, err := ops.Plan(g.loss.Graph())
		if err != nil {
			return 0, err
		}
		need += both - shared + own + (f.validation.plan.graphs(f.validation.plan.size, 1)-1)*nodeBytes*len(g.loss.Graph().AllNodes())
		batches += valueBytes(g.inputs)
	}
	need += 3 * batches // one under way, one made and one in the making: see feed
	for _, p := range f.Params.All() {
		need += len(p.Value.Raw) // the best values
	}
	state, err := f.stateBytes(memory.Limit() - need)
	if err != nil {
		return 0, err
	}
	if f.Checkpoint != "" && t.team.rank == 0 { // it gathers as much from each of the others
		need += (t.team.size - 1) * state
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	need += max(int(m.HeapAlloc), state)
	return programBytes + need + int(float64(need)*garbage()), nil
}

// stateBytes returns the bytes of what the solver remembers of this process's part of the parameters, and has it make
// that: all of it, or only so much that it can be seen that it takes more than most.
func (f *fit) stateBytes(most int) (int, error) {
	if f.solver == nil {
		return 0, nil
	}
	t := f.train
	state, seen, all := 0, 0, 0
	for _, i := range t.part() {
		all += valueBytes(t.learnables[i : i+1])
	}
	for _, i := range t.part() {
		if state > most {
			return int(float64(state) / float64(seen) * float64(all)), nil
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

// graphs returns about how many graphs batches of a size take: of each bucket one for every worker, and one for what is
// left over.
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

// gradientBytes returns the bytes of gradients beside those of graphs, in a step of as many micro-batches as there can
// be: partial sums, of which there are, after n micro-batches, as many as n has bits that are set; and what other
// processes send.
func (t *trainer) gradientBytes() int {
	buffers := 0
	for n := len(t.workers); n < t.share; n += len(t.workers) {
		buffers = max(buffers, bits.OnesCount(uint(n)))
	}
	all := valueBytes(t.learnables)
	return buffers*all + all*(t.team.size-1)/t.team.size
}

// garbage returns how much garbage the heap holds as a part of the rest: half of what GOGC allows, which is the most in
// long trainings, while short ones hardly have any.
func garbage() float64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if percent := s[0].Value; percent.Kind() == metrics.KindUint64 && percent.Uint64() < math.MaxUint64 {
		return min(float64(percent.Uint64()), 100) / 200
	}
	return 0
}
