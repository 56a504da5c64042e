package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// CheckGraph returns an error if Gorgonia can't tell two nodes of a finished graph apart. Call it before
// gorgonia.NewTapeMachine. A Function and the packages train, decode and gradcheck call it themselves.
//
// A machine treats two nodes as one if their 32-bit hashes are equal. With 1,000 nodes, this happens in about one graph
// in 10,000. Layers of this package then change the hashes of their own nodes. They can't change the hashes of inputs,
// parameters and Gorgonia's own nodes. Renaming an input or a parameter changes its hash and the hashes of all nodes
// that depend on it.
//
// CheckGraph can't detect that Gorgonia merged two of its own nodes while the graph was built: adding a node returns an
// earlier node with the same operation and hash, whatever its inputs, so only one of the two exists.
func CheckGraph(g *G.ExprGraph) error { return ops.Distinct(g) }
