package ops

import (
	"cmp"
	"errors"
	"slices"
	"weak"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
)

// Buffers holds memory that the ops of one or several graphs share. Only one of the graphs may run at a time, and each
// needs its own Env. An op gets memory for its output when it runs, and the memory is free again when all readers of
// the output have run. The results of a run (see count) stay valid until one of the graphs runs again.
type Buffers struct {
	// Freed, if set, is called with memory that is no longer needed. Tests overwrite that memory to find ops that still
	// read it.
	Freed func(words []uint64)

	slabs  []*slab
	graphs []weak.Pointer[Env] // the planned graphs that the garbage collector hasn't freed
	env    *Env                // the Env of the graph that runs or ran last
	run    uint64              // number of the current run, over all graphs
}

// slab is a block of memory that one lease at a time may use.
type slab struct {
	bytes int
	words []uint64 // nil until first used
	taken bool
}

// memory returns the slab's words.
func (s *slab) memory() []uint64 {
	if s.words == nil {
		s.words = memory.Huge(make([]uint64, (s.bytes+7)/8))
	}
	return s.words
}

// A lease stands for memory that is needed during a part of a run, from the op that fills it to the last op that reads
// it.
type lease struct {
	bytes       int
	readers     int  // number of ops that read it
	kept        bool // whether its memory stays taken until the next run, even after the last reader
	from, until int  // first and last step that needs it, in Gorgonia's order

	slab *slab  // the slab that it uses or used last
	over *slab  // the slab whose memory its tensor uses; nil before the tensor is made
	run  uint64 // the run in which it was last filled
	left int    // number of readers that haven't run yet

	bind func(words []uint64) // makes its tensor use words as memory; nil removes the tensor's memory
}

// begin assigns memory to everything that the op fills. If the op has already run in this run, or if another graph ran
// last, a new run begins.
func (b *Buffers) begin(e *Env, o *op) error {
	if b == nil {
		return nil
	}
	if b.env != e || o.ran == b.run {
		if err := b.start(e); err != nil {
			b.env = nil
			return err
		}
	}
	o.ran = b.run
	for _, l := range o.reads {
		if l.run != b.run || l.left == 0 && !l.kept {
			return errors.New("an input was computed in an earlier run: run a graph with Buffers from its start, on one machine")
		}
	}
	for _, l := range o.fills {
		if l.slab == nil || l.slab.taken {
			l.slab = b.find(l.bytes)
		}
		l.slab.taken, l.run, l.left = true, b.run, l.readers
	}
	return nil
}

// End ends the current run, which may have been of a part of a graph. The next op begins a new run.
func (b *Buffers) End() {
	if b != nil {
		b.env = nil
	}
}

// end returns the memory that no op needs after this one.
func (b *Buffers) end(o *op) {
	if b == nil {
		return
	}
	for _, l := range o.reads {
		l.left--
		b.release(l)
	}
	for _, l := range o.fills {
		b.release(l)
	}
}

func (b *Buffers) release(l *lease) {
	if l.left > 0 || l.kept {
		return
	}
	l.slab.taken = false
	if b.Freed != nil {
		b.Freed(l.slab.words)
	}
}

// start begins a run: all slabs are free.
func (b *Buffers) start(e *Env) error {
	if err := b.plan(e); err != nil {
		return err
	}
	b.env = e
	b.run++
	for _, s := range b.slabs {
		s.taken = false
		if b.Freed != nil {
			b.Freed(s.words)
		}
	}
	return nil
}

// find returns the smallest free slab of at least the given number of bytes, or a new one.
func (b *Buffers) find(bytes int) *slab {
	var fit *slab
	for _, s := range b.slabs {
		if !s.taken && s.bytes >= bytes && (fit == nil || s.bytes < fit.bytes) {
			fit = s
		}
	}
	if fit == nil {
		fit = &slab{bytes: bytes}
		b.slabs = append(b.slabs, fit)
	}
	return fit
}

// plan assigns a slab to every lease of a complete graph, for a run in Gorgonia's order. From the largest lease to the
// smallest, each gets the smallest slab that no other lease uses at the same time, or a new slab. The slabs' sizes
// therefore don't depend on which graph runs first. If a machine runs the ops in a different order and a planned slab
// is taken, begin finds a different one.
func (b *Buffers) plan(e *Env) error {
	nodes := len(e.graph.AllNodes())
	if nodes == e.planned {
		return nil
	}
	if err := Distinct(e.graph); err != nil { // a machine would compute only one of the two nodes, for more readers than counted
		return err
	}
	order, err := G.Sort(e.graph)
	if err != nil {
		return err
	}
	slices.Reverse(order)
	if err := e.count(order); err != nil {
		return err
	}
	e.leases = e.leases[:0]
	for step, n := range order {
		if o := e.op(n); o != nil {
			for _, l := range o.fills {
				if l.from, l.until = step, step; l.kept {
					l.until = len(order)
				}
			}
			for _, l := range o.reads {
				l.until = max(l.until, step)
			}
			e.leases = append(e.leases, o.fills...)
		}
	}
	slices.SortStableFunc(e.leases, func(a, b *lease) int { return cmp.Compare(b.bytes, a.bytes) })
	slices.SortStableFunc(b.slabs, func(a, b *slab) int { return cmp.Compare(b.bytes, a.bytes) })
	var tenants [][]*lease // the leases of each slab
	for _, l := range e.leases {
		i := len(tenants) - 1
		for i >= 0 && slices.ContainsFunc(tenants[i], func(m *lease) bool { return l.from <= m.until && m.from <= l.until }) {
			i--
		}
		if i < 0 {
			i, tenants = len(tenants), append(tenants, nil)
		}
		tenants[i] = append(tenants[i], l)
		if i == len(b.slabs) {
			b.slabs = append(b.slabs, &slab{})
		}
		l.slab = b.slabs[i]
	}
	b.graphs = slices.DeleteFunc(b.graphs, func(p weak.Pointer[Env]) bool { return p.Value() == nil || p.Value() == e })
	b.graphs = append(b.graphs, weak.Make(e))
	for i, t := range tenants {
		if b.slabs[i].bytes < t[0].bytes {
			b.grow(b.slabs[i], t[0].bytes)
		}
	}
	e.planned = nodes
	return nil
}

// grow enlarges a slab. All tensors that use the slab release the old memory before the new memory is allocated.
func (b *Buffers) grow(s *slab, bytes int) {
	s.bytes = bytes
	if s.words != nil {
		s.words = nil
		b.rebind(s)
		s.memory()
		b.rebind(s)
	}
}

// Reserve adds a slab to b for each slab of other Buffers, of the same size. If b was empty, it is then large enough
// for the graphs planned with the other Buffers.
func (b *Buffers) Reserve(like *Buffers) {
	for _, s := range like.slabs {
		b.slabs = append(b.slabs, &slab{bytes: s.bytes})
	}
}

// Plan estimates how many bytes a complete graph needs when it runs. The result shared is the size of the graph's
// Buffers, for all graphs that share them. Most of this memory is allocated on first use. The result own is the size of
// all other outputs: of ops without Buffers, and of Gorgonia's ops that don't overwrite the output of a Heed op.
func Plan(g *G.ExprGraph) (shared, own int, err error) {
	var b *Buffers
	for _, n := range g.AllNodes() {
		switch o := n.Op().(type) {
		case nil:
		case *op:
			if o.env.Buffers == nil {
				for _, l := range o.fills {
					own += l.bytes
				}
			} else if b = o.env.Buffers; err == nil {
				err = b.plan(o.env)
			}
		default:
			inPlace := false
			for it := g.From(n.ID()); it.Next(); {
				input := it.Node().(*G.Node)
				_, ours := input.Op().(*op)
				inPlace = inPlace || ours && o.OverwritesInput() >= 0 && bytesOf(input) >= bytesOf(n)
			}
			if !inPlace {
				own += bytesOf(n)
			}
		}
	}
	if b != nil {
		for _, s := range b.slabs {
			shared += s.bytes
		}
	}
	return shared, own, err
}

// bytesOf returns the size of a node's value in bytes, or 0 if it has none.
func bytesOf(n *G.Node) int {
	if n.Type() == nil { // such as a node of gorgonia.Read
		return 0
	}
	return n.Shape().TotalSize() * int(n.Dtype().Size())
}

// rebind makes all tensors that use a slab use its current memory.
func (b *Buffers) rebind(s *slab) {
	for _, p := range b.graphs {
		if e := p.Value(); e != nil {
			for _, l := range e.leases {
				if l.over == s {
					l.bind(s.words)
				}
			}
		}
	}
}

// count counts the readers of every lease. It also marks the graph's results, whose memory stays taken until the next
// run. Results are nodes that no other node reads, such as most gradients; nodes that gorgonia.Read reads; and
// gradients of inputs.
//
// Gorgonia's own ops may overwrite their inputs or return views of them. So the memory of these inputs stays taken
// until every direct or indirect reader of the ops' outputs has run. Ops of a different Env are treated in the same
// way.
func (e *Env) count(order G.Nodes) error {
	read := map[*G.Node]bool{}
	for _, n := range order {
		o, inputs := e.op(n), e.children(n)
		if o != nil {
			inputs = inputs[:len(inputs)-o.after]
		}
		for _, input := range inputs {
			read[input] = true
		}
		if o != nil {
			for _, l := range o.fills {
				l.readers, l.kept = 0, false
			}
		} else if o, ok := n.Op().(*op); ok && o.env.Buffers == e.Buffers {
			return errors.New("two Builds with the same Buffers added to this graph: build the whole graph with one Build")
		}
	}
	for _, n := range order {
		o := e.op(n)
		if !read[n] || slices.ContainsFunc(n.DerivOf(), (*G.Node).IsVar) {
			for _, l := range e.behind(nil, map[*G.Node]bool{}, n) {
				l.kept = true
			}
		}
		if o == nil {
			continue
		}
		o.reads = append(o.reads[:0], o.saved...)
		o.reads = e.behind(o.reads, map[*G.Node]bool{}, o.inputs[:len(o.inputs)-o.after]...)
		for _, l := range o.reads {
			l.readers++
		}
	}
	return nil
}

// behind appends the leases of the nodes' outputs to leases. If a node isn't an op of this Env, its value may be a view
// of its inputs, so behind appends the leases of its inputs instead.
func (e *Env) behind(leases []*lease, seen map[*G.Node]bool, nodes ...*G.Node) []*lease {
	for _, n := range nodes {
		if seen[n] {
			continue
		}
		seen[n] = true
		if o := e.op(n); o == nil {
			leases = e.behind(leases, seen, e.children(n)...)
		} else if o.output != nil {
			leases = append(leases, o.output)
		}
	}
	return leases
}

// op returns the op of a node if it belongs to this Env, and nil otherwise.
func (e *Env) op(n *G.Node) *op {
	if o, ok := n.Op().(*op); ok && o.env == e {
		return o
	}
	return nil
}

// children returns a node's inputs.
func (e *Env) children(n *G.Node) (input G.Nodes) {
	if o, ok := n.Op().(*op); ok {
		return o.inputs
	}
	for it := e.graph.From(n.ID()); it.Next(); {
		input = append(input, it.Node().(*G.Node))
	}
	return input
}
