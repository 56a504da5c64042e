package main

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
)

// network is the graph of a training step.
type network struct {
	bench.GPT
	graph  *G.ExprGraph
	params G.Nodes
	loss   *G.Node // a scalar
	value  G.Value // the loss, once the graph has run

	initial func(name string, shape ...int) *tensor.Dense
}

// newNetwork builds the loss of a batch and its gradients. The arguments ids and targets have shape (B·T). The
// function initial returns the initial values of a parameter; a weight has shape (in, out).
func newNetwork(c bench.GPT, ids, targets []int, initial func(name string, shape ...int) *tensor.Dense) (n *network, err error) {
	n = &network{GPT: c, graph: G.NewGraph(), initial: initial}
	rows := c.Batch * c.Length
	tokens := n.input("ids", tensor.New(tensor.WithBacking(ids)))
	x := G.Must(G.ByIndices(n.param("embedding.weight", c.Vocab, c.Dim), tokens, 0)) // (V, D) -> (B·T, D)
	x = reshape(x, c.Batch, c.Length, c.Dim)
	x = G.Must(G.BroadcastAdd(x, n.param("positions.weight", 1, c.Length, c.Dim), nil, []byte{0})) // (B, T, D)
	x = reshape(x, rows, c.Dim)

	mask := n.mask()
	for i := range c.Blocks {
		block := fmt.Sprintf("blocks.%d.", i)
		x = G.Must(G.Add(x, n.attention(block+"attention.", n.norm(block+"norm1.", x), mask)))
		up := G.Must(G.Rectify(n.linear(block+"feedforward.up.", n.norm(block+"norm2.", x), 4*c.Dim)))
		x = G.Must(G.Add(x, n.linear(block+"feedforward.down.", up, c.Dim)))
	}
	logits := n.linear("head.", n.norm("norm.", x), c.Vocab) // (B·T, V)

	// The mean of −log softmax(logits)[target].
	chosen := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(rows, c.Vocab))
	for i, t := range targets {
		chosen.Data().([]float32)[i*c.Vocab+t] = -1 / float32(rows)
	}
	n.loss = G.Must(G.Sum(G.Must(G.HadamardProd(G.Must(G.LogSoftMax(logits, 1)), n.input("targets", chosen)))))
	G.Read(n.loss, &n.value)
	_, err = G.Grad(n.loss, n.params...)
	return n, err
}

// param adds a parameter. Each parameter needs its own name, because Gorgonia merges two leaves with the same name.
func (n *network) param(name string, shape ...int) *G.Node {
	p := n.input(name, n.initial(name, shape...))
	n.params = append(n.params, p)
	return p
}

func (n *network) input(name string, t *tensor.Dense) *G.Node {
	return G.NewTensor(n.graph, t.Dtype(), t.Dims(), G.WithShape(t.Shape()...), G.WithName(name), G.WithValue(t))
}

// reshape reshapes x. No other op may read x, forward or backward: the output shares the memory of x, and an op that
// overwrites the output also overwrites x.
func reshape(x *G.Node, shape ...int) *G.Node { return G.Must(G.Reshape(x, shape)) }

// linear is x·W + b: (rows, in) x (in, out) -> (rows, out).
func (n *network) linear(name string, x *G.Node, out int) *G.Node {
	product := G.Must(G.Mul(x, n.param(name+"weight", x.Shape()[1], out)))
	return G.Must(G.BroadcastAdd(product, n.param(name+"bias", 1, out), nil, []byte{0}))
}

// norm is LayerNorm of each row: (x − mean)/√(variance + 1e-5)·γ + β.
func (n *network) norm(name string, x *G.Node) *G.Node {
	rows, dim := x.Shape()[0], x.Shape()[1]
	mean := reshape(G.Must(G.Mean(x, 1)), rows, 1)
	centred := G.Must(G.BroadcastSub(x, mean, nil, []byte{1}))
	variance := reshape(G.Must(G.Mean(G.Must(G.Square(centred)), 1)), rows, 1)
	deviation := G.Must(G.Sqrt(G.Must(G.Add(variance, G.NewConstant(float32(1e-5))))))
	y := G.Must(G.BroadcastHadamardDiv(centred, deviation, nil, []byte{1}))
	y = G.Must(G.BroadcastHadamardProd(y, n.param(name+"weight", 1, dim), nil, []byte{0}))
	return G.Must(G.BroadcastAdd(y, n.param(name+"bias", 1, dim), nil, []byte{0}))
}

// attention is causal multi-head self-attention: (B·T, D) -> (B·T, D).
func (n *network) attention(name string, x, mask *G.Node) *G.Node {
	q := n.split(n.linear(name+"query.", x, n.Dim))
	k := n.split(n.linear(name+"key.", x, n.Dim))
	v := n.split(n.linear(name+"value.", x, n.Dim))
	scores := G.Must(G.BatchedMatMul(q, k, false, true)) // (B·H, T, K) x (B·H, T, K)ᵀ -> (B·H, T, T)
	scale := G.NewConstant(float32(1 / math.Sqrt(float64(n.Dim/n.Heads))))
	masked := G.Must(G.BroadcastAdd(G.Must(G.Mul(scores, scale)), mask, nil, []byte{0}))
	weights := G.Must(G.SoftMax(masked, 2))
	heads := reshape(G.Must(G.BatchedMatMul(weights, v)), n.Batch, n.Heads, n.Length, n.Dim/n.Heads)
	side := reshape(G.Must(G.Transpose(heads, 0, 2, 1, 3)), n.Batch*n.Length, n.Dim) // (B, T, H, K) -> (B·T, D)
	return n.linear(name+"output.", side, n.Dim)
}

// split splits the heads: (B·T, D) -> (B·H, T, K).
func (n *network) split(x *G.Node) *G.Node {
	x = reshape(x, n.Batch, n.Length, n.Heads, n.Dim/n.Heads)
	x = G.Must(G.Transpose(x, 0, 2, 1, 3)) // this copies x
	return reshape(x, n.Batch*n.Heads, n.Length, n.Dim/n.Heads)
}

// mask hides later positions from each position: (1, T, T).
func (n *network) mask() *G.Node {
	t := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(1, n.Length, n.Length))
	for i := range n.Length {
		for j := i + 1; j < n.Length; j++ {
			t.Data().([]float32)[i*n.Length+j] = float32(math.Inf(-1))
		}
	}
	return n.input("mask", t)
}
