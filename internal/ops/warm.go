package ops

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gorgonia's package has constants that it shares among graphs, such as the 1 that a gradient begins with, and computes
// their hashes when a graph first gets them: a data race where two graphs are built side by side, in users' own code
// too. So every one of them is put into a graph once, before anything else runs. A failure would show there again.
func init() {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		x := G.NewVector(G.NewGraph(), dt, G.WithShape(2), G.WithName("x"))
		for _, f := range []func(*G.Node) (*G.Node, error){
			G.Square, G.Cube, G.Log2, G.Tanh, // whose derivatives have 2, 3, log 2 and 1
			G.Rectify, // which compares with 0
		} {
			if y, err := f(x); err == nil {
				G.Grad(G.Must(G.Sum(y)), x)
			}
		}
	}
}
