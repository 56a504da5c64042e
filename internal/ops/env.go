package ops

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/text"
)

// An Env holds the settings that the ops of a graph share, and an index of the graph's nodes. One Env serves one graph.
// A layers.Build holds one and passes it to the ops. The zero Env is ready to use.
type Env struct {
	Training bool     // dropout is active
	Cores    int      // largest number of processors that an op uses; 0 means GOMAXPROCS
	Seed     uint64   // decides which elements dropout drops
	Runs     *uint64  // number of a run, set by the caller; ops add 1 per run until it changes; nil means 0
	BFloat16 bool     // products of linear layers and heads round their factors to bfloat16
	Buffers  *Buffers // memory that ops share; nil if each op owns its memory
	Fixed    *G.Nodes // inputs that need no gradient in training; nil means none
	Err      error    // an error of the Build, which Enter returns

	// Kept has the panels of parameters. Products in evaluation use and fill them.
	Kept map[*G.Node]*kernel.Kept

	graph    *G.ExprGraph
	dropouts uint64             // number of dropouts in the graph so far
	unalike  int                // number of results of unlike
	nodes    map[uint32]*G.Node // the graph's nodes, by hash
	known    int                // number of the graph's nodes that learn has seen
	planned  int                // number of nodes that the graph had when its memory was planned
	leases   []*lease           // leases with planned memory
	wanted   map[*G.Node]bool   // the results of wants
	ties     map[*G.Node]*tie   // by table
	earlier  *G.Node            // during Following, the node of the earlier use
}

// Enter binds the Env to a graph. It returns an error if the Env is bound to a different graph, and e.Err if that is
// set.
func (e *Env) Enter(g *G.ExprGraph) error {
	switch {
	case e.Err != nil:
		return e.Err
	case e.graph == nil:
		e.graph, e.nodes = g, map[uint32]*G.Node{}
	case e.graph != g:
		return errors.New("this Build has been used for another graph: make one Build for each graph")
	}
	return nil
}

// apply adds an op to the graph of its inputs. It leaves out inputs that are nil.
//
// Gorgonia identifies nodes by 32-bit hashes. AddNode merges two nodes with equal hashes and equal ops, even if their
// inputs differ, and a machine computes only one of two nodes with equal hashes. So apply computes the hash before it
// adds the node. If the graph has a node with this hash, apply returns that node if it is the same op on the same
// inputs. Otherwise apply changes the op's salt, which changes the hash.
func (e *Env) apply(o *op, inputs ...*G.Node) (*G.Node, error) {
	name := cmp.Or(o.layer, o.name)
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(n *G.Node) bool { return n == nil })
	for _, n := range inputs {
		if n.Graph() != inputs[0].Graph() {
			return nil, fmt.Errorf("%s: an input of shape %v belongs to another graph, not the first input's", name, n.Shape())
		}
		if s := n.Shape(); slices.Contains(s, 0) {
			return nil, fmt.Errorf("%s: every axis of an input must have a size of at least 1, got %v", name, s)
		}
		o.shapes = append(o.shapes, n.Shape())
	}
	if err := e.Enter(inputs[0].Graph()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o.inputs, o.env = inputs, e
	e.learn()
	for other := e.nodes[o.nodeHash()]; other != nil; other = e.nodes[o.nodeHash()] {
		if twin, ok := other.Op().(*op); ok && twin.name == o.name && slices.Equal(twin.inputs, o.inputs) {
			return other, nil
		}
		o.salt++
	}
	n, err := G.ApplyOp(o, inputs...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	if n.Op() != G.Op(o) {
		return nil, fmt.Errorf("%s: Gorgonia merged it with a different node, %v", o.name, n)
	}
	return n, nil
}

// unlike returns a text for the name of an op with a function, which no other op of the graph has: functions can't be
// compared.
func (e *Env) unlike() string {
	e.unalike++
	return fmt.Sprint(" function ", e.unalike)
}

// wants reports whether ops compute gradients with respect to a node. In training, they compute none for the inputs in
// e.Fixed, for constants, and for nodes that depend on nothing else.
func (e *Env) wants(n *G.Node) bool {
	if !e.Training || e.Fixed == nil {
		return true
	}
	want, known := e.wanted[n]
	if known {
		return want
	}
	inputs := e.children(n)
	if o, ok := n.Op().(*op); ok {
		inputs = inputs[:o.wrt]
	}
	want = n.IsVar() && !slices.Contains(*e.Fixed, n) || slices.ContainsFunc(inputs, e.wants)
	if e.wanted == nil {
		e.wanted = map[*G.Node]bool{}
	}
	e.wanted[n] = want
	return want
}

// A tie is a table of embeddings that is also a head's weight. Both gradients share one buffer: the head fills it, and
// an embedding's gradient adds to it.
type tie struct {
	head *op
	grad *G.Node // the head's gradient, until an embedding has added to it
}

// tie reports whether an embedding adds its gradient to the gradient of head's second input. It does if the gradient of
// head's first input flows to it, because then its own gradient is computed later. A table has one such head.
func (e *Env) tie(head *op) bool {
	table := head.inputs[1]
	t := e.ties[table]
	if t == nil {
		if !e.isTable(table) || !e.looksUp(table, head.inputs[0], map[*G.Node]bool{}) {
			return false
		}
		if e.ties == nil {
			e.ties = map[*G.Node]*tie{}
		}
		t = &tie{head: head}
		e.ties[table] = t
	}
	return t.head == head
}

// isTable reports whether an op looks up rows of node n.
func (e *Env) isTable(n *G.Node) bool {
	for it := e.graph.To(n.ID()); it.Next(); {
		if o := e.op(it.Node().(*G.Node)); o != nil && o.lookup && o.inputs[0] == n {
			return true
		}
	}
	return false
}

// looksUp reports whether the gradient of node n flows to an op that looks up rows of a table.
func (e *Env) looksUp(table, n *G.Node, seen map[*G.Node]bool) bool {
	seen[n] = true
	differentiable, ok := n.Op().(G.SDOp)
	if !ok {
		return false
	}
	inputs := e.children(n)
	if o := e.op(n); o != nil && o.lookup && inputs[0] == table {
		return true
	}
	for i, flows := range differentiable.DiffWRT(len(inputs)) {
		if flows && !seen[inputs[i]] && e.looksUp(table, inputs[i], seen) {
			return true
		}
	}
	return false
}

// learn records the nodes that were added to the graph since the last call of learn.
func (e *Env) learn() {
	nodes := e.graph.AllNodes()
	for ; e.known < len(nodes); e.known++ {
		n := nodes[e.known]
		if h := n.Hashcode(); e.nodes[h] == nil {
			e.nodes[h] = n
		}
	}
}

// nodeHash returns the hash that gorgonia.Node.Hashcode will return for a node with this op and its inputs.
func (o *op) nodeHash() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v%v", o.out, o.shape)
	o.WriteHash(h)
	h.Write([]byte{byte(len(o.inputs))})
	for _, n := range o.inputs {
		binary.Write(h, binary.LittleEndian, n.Hashcode())
	}
	return h.Sum32()
}

// A CollisionError reports two nodes of a graph that Gorgonia can't distinguish.
type CollisionError struct{ A, B *G.Node }

func (e *CollisionError) Error() string {
	what := fmt.Sprintf("Gorgonia can't distinguish nodes %v and %v, because their hashes are equal, and would compute only one of them", e.A, e.B)
	a, b := leaves(e.A), leaves(e.B)
	inputs := slices.DeleteFunc(slices.Concat(a, b), func(n *G.Node) bool { return slices.Contains(a, n) && slices.Contains(b, n) })
	if len(inputs) == 0 { // renaming an input of both changes both hashes
		inputs = a
	}
	if len(inputs) == 0 {
		return what
	}
	names := text.List(len(inputs), 3, ", ", func(i int) string { return fmt.Sprintf("%q of shape %v", inputs[i].Name(), inputs[i].Shape()) })
	return fmt.Sprintf("%s: give one of these another name, by gorgonia.WithName for an input or by Params.Scope for a parameter: %s", what, names)
}

// leaves returns the inputs and parameters that a node depends on.
func leaves(n *G.Node) (found G.Nodes) {
	g, seen := n.Graph(), map[*G.Node]bool{}
	var walk func(n *G.Node)
	walk = func(n *G.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.IsVar() {
			found = append(found, n)
		}
		for it := g.From(n.ID()); it != nil && it.Next(); { // nil: a constant that is in no graph
			walk(it.Node().(*G.Node))
		}
	}
	walk(n)
	return found
}

// Distinct returns a *CollisionError if two nodes of a graph share a hash: a machine would compute only one of them. It
// can't find nodes that gorgonia's AddNode has merged, because only one of them is left.
func Distinct(g *G.ExprGraph) error {
	seen := map[uint32]*G.Node{}
	for _, n := range g.AllNodes() {
		if other := seen[n.Hashcode()]; other != nil && other != n {
			return &CollisionError{other, n}
		}
		seen[n.Hashcode()] = n
	}
	return nil
}
