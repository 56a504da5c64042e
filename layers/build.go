package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
)

// A Build holds the settings of one graph, and records what Forward adds to the graph. Use exactly one Build per graph:
// the Build numbers the dropout nodes, so that no two of them drop the same elements, and lists the parameters. The
// zero Build is for evaluation. See Params.KeepPanels for memory that makes evaluation faster.
type Build struct {
	// Training says that the graph is for training: it has dropout, and int8 weights and a Cache are errors.
	Training bool

	// Seed is the seed of dropout.
	Seed uint64

	// Runs is the number of the graph's next run. Seed and Runs together decide which elements dropout drops. Each run
	// adds 1 to Runs. You may set Runs between two runs, for example when training resumes, or when several graphs take
	// turns within one step.
	Runs uint64

	// Cores is the largest number of processors that one op uses; 0 means GOMAXPROCS. It never changes a result.
	Cores int

	// Precision is the precision of the factors in linear layers' products. If it is BFloat16 and parameters are
	// float64, Forward returns an error. Package train sets it for graphs that train, not for validation.
	Precision Precision

	// CaptureWeights keeps the attention weights of every layer for the method AttentionWeights.
	CaptureWeights bool

	// Composed builds attention and feed-forward layers from separate ops instead of fused ones, so that every stage is
	// a node. Results are the same up to rounding, but take more time, and memory for the attention weights.
	Composed bool

	// If Cache isn't nil, decoders continue the sequences in the Cache. The graph must be for evaluation.
	Cache *Cache

	// Positions is a node with the positions of a model's input tokens, for example when sequences are padded in front
	// or several sequences share a row. The interface Positions describes its dtype and shape. If Positions is nil,
	// positions count from 0, or from the number of tokens in the Cache. The positions in a mask don't depend on it:
	// they always count along the row.
	Positions *G.Node

	// Segments is a node with the segment of each input token, from 0, for models with segments: see ModelConfig. It
	// has dtype tensor.Int and the shape of the tokens. If Segments is nil, all tokens are in segment 0.
	Segments *G.Node

	// Fixed lists input nodes that keep their values in training, such as a constant table. Bind adds the nodes of
	// Frozen parameters, and package train adds the nodes of the data. Package train returns an error for any other
	// input node that gets no data and isn't learned. In a graph for training, this package's ops compute no gradients
	// with respect to these nodes, or to nodes that depend on nothing else. List nodes before you call gorgonia.Grad.
	Fixed G.Nodes

	// Adapter, if not nil, is trained in place of the parameters that it was made for: see the type Adapter.
	Adapter *Adapter

	// Buffers, if not nil, is memory that this package's nodes share with each other and with other graphs; see the
	// type Buffers. If it is nil, each node has its own memory. Set Buffers before you use the Build.
	Buffers *Buffers

	ops      ops.Env
	params   G.Nodes
	bound    map[*Param]*G.Node
	dropped  map[*G.Node]*G.Node // inputs of the Adapter after dropout
	captured []AttentionWeights
	routings []Routing
	placed   map[string]bool // the names of the Cache's places that the graph uses
}

// Buffers is memory that several graphs share. The graphs must never run at the same time, like the graphs of one loss
// for several lengths. Together, the graphs need about as much memory as the largest of them. Each graph has its own
// Build. Within a run, the memory of a node is reused as soon as no other node still needs its value.
//
// After a run, these values are valid: values that gorgonia.Read copied, the values of nodes that no other node reads,
// and the gradients of inputs and parameters. The values of other nodes may have been overwritten. The next run, of the
// same graph or of another graph with the same Buffers, may overwrite all values except the copies by gorgonia.Read.
//
// The zero Buffers is ready to use. It grows when a graph needs more memory. Its memory is freed together with the last
// graph that uses it.
type Buffers struct{ memory ops.Buffers }

// AttentionWeights holds the attention weights of one layer. In a training graph, these are the weights after dropout.
type AttentionWeights struct {
	Layer   string  // the layer's scope, such as "blocks.0.attention"
	Weights *G.Node // (B, H, T, S); B is 1 without a batch axis, and S is the Cache's capacity if there is a Cache
}

// AttentionWeights returns the weights of every attention layer that Forward added with CaptureWeights set, in order.
// To get their values, call gorgonia.Read for each node before you make the VM. A run may overwrite the Value of the
// node itself.
func (b *Build) AttentionWeights() []AttentionWeights { return b.captured }

// Learnables returns the nodes of all parameters bound so far, in order, without the frozen ones. Pass them to
// gorgonia.Grad, gorgonia.BindDualValues and, through gorgonia.NodesToValueGrads, to a solver.
func (b *Build) Learnables() G.Nodes { return b.params }

// Bind returns the node of parameter p in graph g. The first call adds the node. The node uses the parameter's own
// memory, so a solver that updates the node also updates the parameter and its nodes in all other graphs. Bind returns
// an error if another node of the graph has the parameter's name, or if another Build has bound the parameter into the
// graph. For a nil parameter, such as the bias of a layer without one, Bind returns a nil node.
//
// With an Adapter, Bind returns the node of the Adapter's parameter of the same name if there is one. All parameters
// that aren't the Adapter's are bound as if they were Frozen.
func (b *Build) Bind(g *G.ExprGraph, p *Param) (*G.Node, error) {
	if err := b.Env().Enter(g); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, nil
	}
	if p = b.own(p); p.int8 != nil {
		return nil, fmt.Errorf("parameter %q: only a Linear and an Embedding can use its int8 weights: don't call Quantize", p.Name)
	}
	return b.bind(g, p, p.Value, p.Frozen || b.Adapter != nil && b.Adapter.Params.Get(p.Name) != p)
}

// own returns the Adapter's parameter with the name of p, or p if there is none.
func (b *Build) own(p *Param) *Param {
	if b.Adapter != nil {
		if own := b.Adapter.Params.Get(p.Name); own != nil {
			return own
		}
	}
	return p
}

// bind returns the node of a parameter's values.
func (b *Build) bind(g *G.ExprGraph, p *Param, values *tensor.Dense, fixed bool) (*G.Node, error) {
	if n := b.bound[p]; n != nil {
		return n, nil
	}
	n, old, err := named(g, p.Name, values)
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
	switch {
	case !b.Training:
		if b.ops.Kept == nil {
			b.ops.Kept = map[*G.Node]*kernel.Kept{}
		}
		b.ops.Kept[n] = &p.kept
	case !fixed:
		p.kept.Keep(false)
	}
	if fixed {
		b.Fixed = append(b.Fixed, n)
	} else {
		b.params = append(b.params, n)
	}
	return n, nil
}

// named returns the graph's input node with the given name and tensor. If the graph has no such node, named adds one
// and returns false for old.
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

// Env returns the Build's settings for Heed's internal ops. Only Heed's own packages need it.
func (b *Build) Env() *ops.Env {
	b.ops.Training, b.ops.Cores, b.ops.Seed, b.ops.Runs, b.ops.Fixed, b.ops.Err = b.Training, b.Cores, b.Seed, &b.Runs, &b.Fixed, b.check()
	b.ops.BFloat16 = b.Precision == BFloat16
	if b.Buffers != nil {
		b.ops.Buffers = &b.Buffers.memory
	}
	return &b.ops
}

// check returns an error if Cores or Precision is invalid.
func (b *Build) check() error {
	if b.Cores < 0 {
		return fmt.Errorf("the Build's Cores must be at least 1, or 0 for all, got %d", b.Cores)
	}
	return b.Precision.check()
}
