package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// Mode says what a graph is built for.
type Mode int

const (
	Evaluation Mode = iota // no dropout anywhere in the graph
	Training               // dropout is active
)

// A Build is what Forward needs to know about the graph that it adds to, and where it notes what it added. One Build
// serves one graph, and a graph has one Build: by it dropouts are numbered, lest two drop the same elements, and
// parameters listed. The zero Build is for evaluation.
type Build struct {
	Mode Mode

	// Seed decides which elements dropout drops.
	Seed uint64

	// Runs is the number of the graph's next run, which decides, with the Seed, what dropout drops. Runs count on from
	// it by themselves. Changed between two runs it numbers the next one: as where training is resumed, or where
	// several graphs take a step's parts in turn.
	Runs uint64

	// Cores is the most processors that the work of an op is spread over; all that Go may use (GOMAXPROCS) if 0. It
	// never changes a result.
	Cores int

	// CaptureWeights keeps the attention weights of every layer: see Captured.
	CaptureWeights bool

	// Composed builds attention from separate ops, every stage a node to look at, also where one op would do. The
	// results are the same but for rounding; it takes more time, and memory of the size of the weights.
	Composed bool

	// Cache makes the self-attention of decoders continue the sequences that it holds, in a graph for evaluation; nil
	// for sequences from their start.
	Cache *Cache

	// Positions are those of the tokens of a model's input, where they aren't counted from 0: as where sequences are
	// padded in front, or several share a row. It is a node of dtype tensor.Int, of a shape that the hooks of a model's
	// Positions take. A mask's positions are still places in the row. nil counts from 0, or on from what the Cache
	// holds.
	Positions *G.Node

	// Fixed are input nodes that hold numbers which are neither fed nor learned, as a table of one's own or parameters
	// that are to stay as they are. Package train steps none of them, and refuses any that isn't declared here. Bind
	// adds parameters that are Frozen.
	Fixed G.Nodes

	// Buffers, if set, is memory that the graph's nodes of this package share, among them and with other graphs: see
	// Buffers. nil gives each node memory of its own. It is to be set before the Build is used.
	Buffers *Buffers

	ops      ops.Env
	params   G.Nodes
	bound    map[*Param]*G.Node
	captured []Captured
	placed   map[string]bool // what of the Cache the graph uses
}

// Buffers are memory for graphs that run in turn, never two at once, as those of one loss for several lengths: together
// they hold about what the largest holds alone. Each has a Build of its own. Within a run, memory is used again as soon
// as what it holds has been read.
//
// So when a graph has run, only its results are there: what was read with gorgonia.Read, nodes that no other node
// reads, and the gradients of inputs and parameters. The values of other nodes may have been written over. When any
// graph over the same Buffers runs next, the results are gone as well, but for what gorgonia.Read has copied.
//
// The zero Buffers are ready to use. They grow when a graph needs more, and are freed with the last graph over them.
type Buffers struct{ memory ops.Buffers }

// Captured are the attention weights of one layer: in a training graph with dropout, what dropout left of them, scaled.
type Captured struct {
	Layer   string  // the layer's scope, such as "blocks.0.attention"
	Weights *G.Node // (B, H, T, S), with a B of 1 where there is no batch axis, and with a Cache an S of its capacity
}

// Captured returns the weights of every attention layer that Forward added with CaptureWeights set, in order. Make a
// gorgonia.Read of a node before the VM, and copy what it reads: a node's own Value may be overwritten.
func (b *Build) Captured() []Captured {
	return b.captured
}

// Learnables returns the nodes of every parameter that Forward has bound so far, in order, but for frozen ones: what to
// hand to gorgonia.Grad, gorgonia.BindDualValues and, by gorgonia.NodesToValueGrads, to a solver.
func (b *Build) Learnables() G.Nodes {
	return b.params
}

// Bind makes a parameter a node of a graph, over the parameter's own memory: a solver that steps the node trains the
// parameter, and every other graph that it is bound into sees that. A parameter that the Build has bound gives
// that node again. It is an error if the graph has another node of that name, or if another Build has bound the
// parameter into it.
func (b *Build) Bind(g *G.ExprGraph, p *Param) (*G.Node, error) {
	if err := b.Env().Enter(g); err != nil {
		return nil, err
	}
	if n := b.bound[p]; n != nil {
		return n, nil
	}
	n, old, err := named(g, p.Name, p.Value)
	if err != nil {
		return nil, err
	}
	if old {
		return nil, fmt.Errorf("parameter %q: another Build has bound it into this graph: make one Build for each graph", p.Name)
	}
	if b.bound == nil {
		b.bound = map[*Param]*G.Node{}
	}
	b.bound[p] = n
	if p.Frozen {
		b.Fixed = append(b.Fixed, n)
	} else {
		b.params = append(b.params, n)
	}
	return n, nil
}

// named returns the graph's input node of that name over that tensor: the old one, or else a new one.
func named(g *G.ExprGraph, name string, value *tensor.Dense) (n *G.Node, old bool, err error) {
	if nodes := g.ByName(name); len(nodes) > 0 {
		n := nodes[0]
		if v := n.Value(); v != nil && v.Uintptr() == value.Uintptr() {
			return n, true, nil
		}
		return nil, false, fmt.Errorf("the graph has another node named %q, of shape %v: two of one name would be merged, so rename one", name, n.Shape())
	}
	// A tensor of its own over the same memory: a VM writes its engine into every tensor that its graph holds, which
	// would be a data race between graphs.
	own := value.ShallowClone()
	return G.NewTensor(g, own.Dtype(), own.Dims(), G.WithShape(own.Shape()...), G.WithName(name), G.WithValue(own)), false, nil
}

// Env returns what Heed's own ops, which are internal, know of the graph.
func (b *Build) Env() *ops.Env {
	b.ops.Training, b.ops.Cores, b.ops.Seed, b.ops.Runs, b.ops.Err = b.Mode == Training, b.Cores, b.Seed, &b.Runs, b.check()
	if b.Buffers != nil {
		b.ops.Buffers = &b.Buffers.memory
	}
	return &b.ops
}

// check checks the Build's numbers.
func (b *Build) check() error {
	switch {
	case b.Mode != Evaluation && b.Mode != Training:
		return fmt.Errorf("the Build's Mode must be Evaluation or Training, got %d", b.Mode)
	case b.Cores < 0:
		return fmt.Errorf("the Build's Cores must be at least 1, or 0 for all, got %d", b.Cores)
	}
	return nil
}
