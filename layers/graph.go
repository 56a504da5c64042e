package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// CheckGraph returns an error if Gorgonia would treat two different nodes of a finished graph as the same node. Call it
// before gorgonia.NewTapeMachine. A Function and the packages train, decode and gradcheck call it themselves.
//
// A machine treats two nodes as the same if their 32-bit hashes are equal. With 1,000 nodes, this happens in about one
// graph in 10,000. The layers of this package then change the hashes of their own nodes. They can't change the hashes
// of inputs, parameters and Gorgonia's own nodes. Renaming an input or a parameter changes its hash and the hashes of
// all nodes that depend on it. The error names the inputs and parameters to choose from, with their shapes.
//
// CheckGraph can't detect if Gorgonia has merged two of its own nodes while the graph was built. If two nodes have the
// same operation and hash, adding the second one returns the first, even if their inputs differ. The graph then has
// only one of them.
func CheckGraph(g *G.ExprGraph) error { return ops.Distinct(g) }
