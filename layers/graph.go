package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// CheckGraph checks that Gorgonia can tell the nodes of a finished graph apart, and returns an error if it
// can't. Call it before gorgonia.NewTapeMachine; a Function, train, decode and gradcheck do.
//
// A machine takes two nodes for one if their hashes, of 32 bits, are equal: among 1,000 nodes that happens once in some
// 10,000 graphs. The layers of this package give their own nodes other hashes then. Inputs, parameters and Gorgonia's
// own nodes can't be given one, but renaming an input or a parameter changes the hashes of all that depends on it.
//
// CheckGraph can't see two of Gorgonia's own nodes that were taken for one while the graph was built: adding a node
// returns an earlier one of the same operation and hash, whatever its inputs are, and only that one is left.
func CheckGraph(g *G.ExprGraph) error { return ops.Distinct(g) }
