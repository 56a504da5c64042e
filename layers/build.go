package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// Mode selects whether a graph is built for evaluation or for training.
type Mode int

const (
	Evaluation Mode = iota // no dropout
	Training               // with dropout
)

// A Build holds the settings with which Forward builds one graph, and records what Forward adds to it. Use exactly one
// Build per graph: it numbers the dropout nodes, so that no two drop the same elements, and it lists the parameters.
// The zero Build is for evaluation.
type Build struct {
	Mode Mode

	// Seed decides which elements dropout drops.
	Seed uint64

	// Runs is the number of the graph's next run. Together with Seed it decides which elements dropout drops. Each run
	// adds 1. Set it between two runs to number the next one, for example when training resumes, or when several graphs
	// take turns within one step.
	Runs uint64

	// Cores is the largest number of processors that one op uses; 0 means GOMAXPROCS. It never changes a result.
	Cores int

	// CaptureWeights keeps the attention weights of every layer; see Captured.
	CaptureWeights bool

	// Composed builds attention from separate ops even where one op would do, so that every stage is a node. Results
	// are the same up to rounding. It takes more time, and memory for the weights.
	Composed bool

	// Cache, if not nil, makes decoders continue the sequences that it holds. The graph must be for evaluation.
	Cache *Cache

	// Positions gives the positions of a model's input tokens, for example when sequences are padded in front or
	// several share a row. It is a node of dtype tensor.Int, with a shape that the hooks of the model's Positions
	// accept. If it is nil, positions count from 0, or from the number of tokens in the Cache. It doesn't change the
	// positions in a mask, which always count along the row.
	Positions *G.Node

	// Fixed lists input nodes that are neither fed nor learned, such as a constant table or parameters that must not
	// change. Package train doesn't update them, and refuses inputs that are not fed, learned or listed here. Bind adds
	// Frozen parameters.
	Fixed G.Nodes

	// Buffers, if not nil, is memory that this package's nodes share with each other and with other graphs; see
	// Buffers. If it is nil, each node has its own memory. Set it before using the Build.
	Buffers *Buffers

	ops      ops.Env
	params   G.Nodes
	bound    map[*Param]*G.Node
	captured []Captured
	placed   map[string]bool // the names of the Cache's places that the graph uses
}

// Buffers are memory shared by graphs that never run at the same time, such as the graphs of one loss for several
// lengths. Together they need about as much memory as the largest graph alone. Each graph has its own Build. Within a
// run, memory is reused as soon as its contents have been read.
//
// After a run, only the graph's results are valid: values that gorgonia.Read copied, nodes that no other node reads,
// and the gradients of inputs and parameters. The values of other nodes may have been overwritten. When another graph
// with the same Buffers runs, or the same graph runs again, only the values copied by gorgonia.Read remain.
//
// The zero Buffers are ready to use. They grow when a graph needs more, and are freed together with the last graph that
// uses them.
type Buffers struct{ memory ops.Buffers }

// Captured holds the attention weights of one layer, in a training graph after dropout.
type Captured struct {
	Layer   string  // the layer's scope, such as "blocks.0.attention"
	Weights *G.Node // (B, H, T, S); B is 1 without a batch axis, and S is the Cache's capacity if there is a Cache
}

// Captured returns the weights of every attention layer that Forward added with CaptureWeights set, in order. To see
// them, create a gorgonia.Read of each node before the VM, and copy the value: a run may overwrite the node's own
// Value.
func (b *Build) Captured() []Captured {
	return b.captured
}

// Learnables returns the nodes of all parameters bound so far, in order, without the frozen ones. Pass them to
// gorgonia.Grad, gorgonia.BindDualValues and, through gorgonia.NodesToValueGrads, to a solver.
func (b *Build) Learnables() G.Nodes {
	return b.params
}

// Bind returns the node of parameter p in graph g, and adds it on the first call. The node uses the parameter's own
// memory: a solver that updates the node updates the parameter, in every graph that it is bound into. Bind returns an
// error if the graph has another node with that name, or if another Build has bound the parameter into the graph.
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
		return nil, fmt.Errorf("parameter %q: another Build has bound it into this graph: use one Build per graph", p.Name)
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

// named returns the graph's input node with the given name and tensor. It adds the node if there is none; old reports
// whether there was one.
func named(g *G.ExprGraph, name string, value *tensor.Dense) (n *G.Node, old bool, err error) {
	if nodes := g.ByName(name); len(nodes) > 0 {
		n := nodes[0]
		if v := n.Value(); v != nil && v.Uintptr() == value.Uintptr() {
			return n, true, nil
		}
		return nil, false, fmt.Errorf("the graph has another node named %q, of shape %v: Gorgonia would merge the two, so rename one", name, n.Shape())
	}
	// The graph gets its own tensor header over the same memory. A VM writes its engine into every tensor of its graph,
	// which would be a data race between graphs.
	own := value.ShallowClone()
	return G.NewTensor(g, own.Dtype(), own.Dims(), G.WithShape(own.Shape()...), G.WithName(name), G.WithValue(own)), false, nil
}

// Env returns the Build's settings in the form that Heed's internal ops take.
func (b *Build) Env() *ops.Env {
	b.ops.Training, b.ops.Cores, b.ops.Seed, b.ops.Runs, b.ops.Err = b.Mode == Training, b.Cores, b.Seed, &b.Runs, b.check()
	if b.Buffers != nil {
		b.ops.Buffers = &b.Buffers.memory
	}
	return &b.ops
}

// check returns an error if Mode or Cores is invalid.
func (b *Build) check() error {
	switch {
	case b.Mode != Evaluation && b.Mode != Training:
		return fmt.Errorf("the Build's Mode must be Evaluation or Training, got %d", b.Mode)
	case b.Cores < 0:
		return fmt.Errorf("the Build's Cores must be at least 1, or 0 for all, got %d", b.Cores)
	}
	return nil
}
