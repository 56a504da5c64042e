package ops

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gorgonia shares constants among graphs, such as the 1 that a gradient begins with, and computes their hashes when a
// graph first uses them. If two graphs are built in parallel, even by a user's own code, this is a data race. So init
// puts each of these constants into a graph once. It ignores errors: they would occur again in the users' graphs.
func init() {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		x := G.NewVector(G.NewGraph(), dt, G.WithShape(2), G.WithName("x"))
		for _, f := range []func(*G.Node) (*G.Node, error){
			G.Square, G.Cube, G.Log2, G.Tanh, // their derivatives use 2, 3, log 2 and 1
			G.Rectify, // compares with 0
		} {
			if y, err := f(x); err == nil {
				G.Grad(G.Must(G.Sum(y)), x)
			}
		}
	}
}
