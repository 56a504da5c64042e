package ops_test

import (
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestGradientsSideBySide differentiates Gorgonia's own expressions in separate graphs, in parallel. If Gorgonia shares
// a constant among graphs and this package's init doesn't put it into a graph, the race detector reports it.
// (gorgonia.Rectify also counts its calls in a variable of its own; nothing here can prevent that race.)
func TestGradientsSideBySide(t *testing.T) {
	for _, f := range []func(*G.Node) (*G.Node, error){
		G.Neg, G.Square, G.Sqrt, G.InverseSqrt, G.Cube, G.Tanh, G.Sigmoid, G.Log2, G.Log1p, G.Expm1, G.Softplus,
		func(x *G.Node) (*G.Node, error) { return G.Pow(x, x) },
		func(x *G.Node) (*G.Node, error) { return G.HadamardDiv(x, x) },
		func(x *G.Node) (*G.Node, error) { return G.LeakyRelu(x, 0.1) },
		func(x *G.Node) (*G.Node, error) { return G.SoftMax(x) },
		func(x *G.Node) (*G.Node, error) { return G.Mean(x) },
	} {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					x := G.NewVector(G.NewGraph(), dt, G.WithShape(3), G.WithName("x"), G.WithInit(G.Ones()))
					y, err := f(x)
					if err == nil && !y.IsScalar() {
						y, err = G.Sum(y)
					}
					if err == nil {
						_, err = G.Grad(y, x)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	}
}
