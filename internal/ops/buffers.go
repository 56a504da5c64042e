package ops

import (
	"cmp"
	"errors"
	"slices"
	"weak"

	G "gorgonia.org/gorgonia"
)

// Buffers are memory that the ops of one or several graphs share. The graphs run in turn, never two at once, and each
// has an Env of its own. An op takes memory when it runs, and gives it back once all that read its output have run.
// The results of a run stay until one of the graphs runs again: see count.
type Buffers struct {
	// Freed is handed memory that nothing will read before it is written again. Tests spoil it.
	Freed func(words []uint64)

	slabs  []*slab
	graphs []weak.Pointer[Env] // those that memory was planned for, as long as others keep them
	env    *Env                // whose graph runs, or ran last
	run    uint64              // its number, over all graphs
}

// slab is memory for one lease at a time.
type slab struct {
	bytes int
	words []uint64 // nil until they are first needed
	taken bool
}

// memory returns the slab's words.
func (s *slab) memory() []uint64 {
	if s.words == nil {
		s.words = make([]uint64, (s.bytes+7)/8)
	}
	return s.words
}

// lease is a need for memory in a part of a run, from the op that fills it to the last that reads it.
type lease struct {
	bytes    int
	readers  int  // how often it is read after it is filled
	kept     bool // until the next run, also when all have read it
	from, to int  // where it begins and ends in Gorgonia's order

	slab *slab  // what it has, or had last
	over *slab  // what its tensor is over, if it has been made
	run  uint64 // when that was
	left int    // readers that haven't run since

	bind func(words []uint64) // has its tensor be over memory, or over none
}

// begin has an op take the memory that it fills. An op that runs again begins a run, and so does one of another graph
// than the last.
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
			return errors.New("an input isn't of this run: a graph with Buffers must be run from its start, by one machine")
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

// end gives back what is no longer needed when an op has run.
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

// find returns a free slab for so many bytes, the smallest that is large enough.
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

// plan gives every lease of a complete graph a slab, for a run in Gorgonia's order: the largest first, each the
// smallest slab that no lease has at the same time, or one of its own. The largest of them is the largest that there
// is, the second the second, and so on, so that the slabs are those of the graph that needs most, whichever runs first.
// Were a machine to take another order, begin would find slabs taken and look for others.
func (b *Buffers) plan(e *Env) error {
	nodes := len(e.graph.AllNodes())
	if nodes == e.planned {
		return nil
	}
	if err := Distinct(e.graph); err != nil { // a machine would have more nodes read the one than are counted
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
				if l.from, l.to = step, step; l.kept {
					l.to = len(order)
				}
			}
			for _, l := range o.reads {
				l.to = max(l.to, step)
			}
			e.leases = append(e.leases, o.fills...)
		}
	}
	slices.SortStableFunc(e.leases, func(a, b *lease) int { return cmp.Compare(b.bytes, a.bytes) })
	slices.SortStableFunc(b.slabs, func(a, b *slab) int { return cmp.Compare(b.bytes, a.bytes) })
	var tenants [][]*lease // of each slab
	for _, l := range e.leases {
		i := len(tenants) - 1
		for i >= 0 && slices.ContainsFunc(tenants[i], func(m *lease) bool { return l.from <= m.to && m.from <= l.to }) {
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

// grow gives a slab more memory, and has all tensors that are over it let go of the old before that is made.
func (b *Buffers) grow(s *slab, bytes int) {
	s.bytes = bytes
	if s.words != nil {
		s.words = nil
		b.rebind(s)
		s.memory()
		b.rebind(s)
	}
}

// Reserve has Buffers that hold no memory yet make it as large as others', for the graphs that these were planned for.
func (b *Buffers) Reserve(like *Buffers) {
	for _, s := range like.slabs {
		b.slabs = append(b.slabs, &slab{bytes: s.bytes})
	}
}

// Plan returns about how many bytes a complete graph will take when it runs. shared are those of its Buffers, for all
// graphs that they know, of which this is now one; what they hold more than before is mostly made when it is first
// needed. own are those of what ops without Buffers return, and Gorgonia's where they don't write to an output of ours.
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
				in := it.Node().(*G.Node)
				_, ours := in.Op().(*op)
				inPlace = inPlace || ours && o.OverwritesInput() >= 0 && bytesOf(in) >= bytesOf(n)
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

// bytesOf returns the bytes of a node's value, if it has one.
func bytesOf(n *G.Node) int {
	if n.Type() == nil { // as gorgonia.Read's
		return 0
	}
	return n.Shape().TotalSize() * int(n.Dtype().Size())
}

// rebind has the tensors over a slab be over the memory that it has now.
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

// count counts the readers of every lease. Kept are the graph's results: what nothing reads, as most gradients, what
// gorgonia.Read reads, and those gradients of inputs that are read.
//
// Gorgonia's own ops may return views of their inputs, or write to them. So what they read is held until all that
// reads what they return, in any number of steps, has run. Ops of another Env are taken for such.
func (e *Env) count(order G.Nodes) error {
	read := map[*G.Node]bool{}
	for _, n := range order {
		o := e.op(n)
		if o == nil || !o.part() {
			for _, in := range e.children(n) {
				read[in] = true
			}
		}
		if o != nil {
			for _, l := range o.fills {
				l.readers, l.kept = 0, false
			}
		} else if o, ok := n.Op().(*op); ok && o.env.Buffers == e.Buffers {
			return errors.New("two Builds that added to the graph have the same Buffers: have one Build make all of it")
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
		if !o.part() {
			o.reads = e.behind(o.reads, map[*G.Node]bool{}, o.inputs...)
		}
		for _, l := range o.reads {
			l.readers++
		}
	}
	return nil
}

// part reports whether an op hands out what the op of its input filled, and reads nothing.
func (o *op) part() bool { return o.output != nil && len(o.fills) == 0 }

// behind appends the outputs that nodes are, or may be views of.
func (e *Env) behind(to []*lease, seen map[*G.Node]bool, nodes ...*G.Node) []*lease {
	for _, n := range nodes {
		if seen[n] {
			continue
		}
		seen[n] = true
		if o := e.op(n); o == nil {
			to = e.behind(to, seen, e.children(n)...)
		} else if o.output != nil {
			to = append(to, o.output)
		}
	}
	return to
}

// op returns the op of a node if it is of this Env, or else nil.
func (e *Env) op(n *G.Node) *op {
	if o, ok := n.Op().(*op); ok && o.env == e {
		return o
	}
	return nil
}

// children returns what a node is computed from.
func (e *Env) children(n *G.Node) (in G.Nodes) {
	if o, ok := n.Op().(*op); ok {
		return o.inputs
	}
	for it := e.graph.From(n.ID()); it.Next(); {
		in = append(in, it.Node().(*G.Node))
	}
	return in
}
