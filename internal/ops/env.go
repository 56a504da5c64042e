package ops

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	G "gorgonia.org/gorgonia"
)

// An Env is what ops know of the graph that they are added to, beside their inputs. One Env serves one graph. It
// travels from a layers.Build to the ops, and from there to the kernels. The zero Env is ready to use.
type Env struct {
	Training bool     // dropout is active
	Cores    int      // the most processors that an op's work is spread over; GOMAXPROCS if 0
	Seed     uint64   // decides what dropout drops
	Runs     *uint64  // the number of the run that follows its last change, from which ops count; 0 if nil
	Buffers  *Buffers // what ops have their memory from; nil if each has its own
	Err      error    // what is wrong with the Build, which Enter returns

	graph    *G.ExprGraph
	dropouts uint64             // numbers them, lest two drop the same elements
	nodes    map[uint32]*G.Node // those of the graph, by hash
	known    int                // how many of the graph's nodes are in nodes
	planned  int                // how many it had when memory was planned for it
	leases   []*lease           // what memory was planned for
}

// Enter notes the graph that this Env is for. Another graph than before is an error.
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

// apply adds an op to its inputs' graph.
//
// Gorgonia takes two nodes for one where their 32-bit hashes are equal: AddNode if they have equal ops as well,
// whatever their inputs are, and every machine that is compiled without a second look. So the hash is computed before
// the node is added. The node that has it is returned if it is the same op of the same inputs; otherwise the op takes a
// salt, which gives it another hash.
func (e *Env) apply(o *op, in ...*G.Node) (*G.Node, error) {
	name := cmp.Or(o.layer, o.name)
	for _, n := range in {
		if n.Graph() != in[0].Graph() {
			return nil, fmt.Errorf("%s: an input of shape %v belongs to another graph than the first one", name, n.Shape())
		}
		if s := n.Shape(); slices.Contains(s, 0) {
			return nil, fmt.Errorf("%s: every axis of an input must have a size of at least 1, got %v", name, s)
		}
		o.shapes = append(o.shapes, n.Shape())
	}
	if err := e.Enter(in[0].Graph()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o.inputs, o.env = in, e
	e.learn()
	for other := e.nodes[o.nodeHash()]; other != nil; other = e.nodes[o.nodeHash()] {
		if twin, ok := other.Op().(*op); ok && twin.name == o.name && slices.Equal(twin.inputs, o.inputs) {
			return other, nil
		}
		o.salt++
	}
	n, err := G.ApplyOp(o, in...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	if n.Op() != G.Op(o) {
		return nil, fmt.Errorf("%s: Gorgonia took it for %v, which it isn't", o.name, n)
	}
	return n, nil
}

// learn notes the nodes that the graph has got since the last time.
func (e *Env) learn() {
	all := e.graph.AllNodes()
	for ; e.known < len(all); e.known++ {
		n := all[e.known]
		if h := n.Hashcode(); e.nodes[h] == nil {
			e.nodes[h] = n
		}
	}
}

// nodeHash returns what gorgonia.Node.Hashcode will return for a node of this op and its inputs.
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

// A CollisionError is two nodes of a graph that Gorgonia can't tell apart.
type CollisionError struct{ A, B *G.Node }

func (e *CollisionError) Error() string {
	return fmt.Sprintf("Gorgonia can't tell node %v from node %v, whose hashes are equal, and would compute one of them alone: give a parameter or an input that they depend on another name", e.A, e.B)
}

// Distinct reports, as a *CollisionError, two nodes of a graph that share a hash: compiling would take one for the
// other. It can't see nodes that gorgonia's AddNode has merged, as only one of them is left.
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
