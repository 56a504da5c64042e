package gradcheck_test

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// elementwise is an op on a float64 vector. It applies f to each element; df is the derivative that the op claims.
type elementwise struct {
	name  string
	f, df func(i int, x float64) float64
}

func (op *elementwise) apply(x *G.Node) *G.Node { return G.Must(G.ApplyOp(op, x)) }

func (op *elementwise) Do(inputs ...G.Value) (G.Value, error) {
	x := inputs[0].Data().([]float64)
	y := make([]float64, len(x))
	for i := range x {
		y[i] = op.f(i, x[i])
	}
	return tensor.New(tensor.WithShape(len(y)), tensor.WithBacking(y)), nil
}

func (op *elementwise) SymDiff(nodes G.Nodes, _, grad *G.Node) (G.Nodes, error) {
	d := &elementwise{name: op.name + "'", f: op.df}
	n, err := G.HadamardProd(grad, d.apply(nodes[0]))
	return G.Nodes{n}, err
}

var vector = G.TensorType{Dims: 1, Of: tensor.Float64}

func (op *elementwise) Arity() int         { return 1 }
func (op *elementwise) Type() hm.Type      { return hm.NewFnType(vector, vector) }
func (op *elementwise) DiffWRT(int) []bool { return []bool{true} }
func (op *elementwise) InferShape(inputs ...G.DimSizer) (tensor.Shape, error) {
	return inputs[0].(tensor.Shape).Clone(), nil
}
func (op *elementwise) ReturnsPtr() bool      { return false }
func (op *elementwise) CallsExtern() bool     { return false }
func (op *elementwise) OverwritesInput() int  { return -1 }
func (op *elementwise) WriteHash(h hash.Hash) { io.WriteString(h, op.name) }
func (op *elementwise) String() string        { return op.name }
func (op *elementwise) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

// noDiff is an op without a derivative.
type noDiff struct{ G.Op }

// halfDiff is an elementwise op whose DiffWRT reports that the op isn't differentiable, although SymDiff works.
type halfDiff struct{ *elementwise }

func (halfDiff) DiffWRT(int) []bool { return []bool{false} }

// scribbler is an op that overwrites its input.
type scribbler struct{ *elementwise }

func (scribbler) Do(inputs ...G.Value) (G.Value, error) {
	inputs[0].Data().([]float64)[0] = 42
	return inputs[0], nil
}

// failing is an op whose Do fails.
type failing struct{ *elementwise }

func (failing) Do(...G.Value) (G.Value, error) { return nil, errors.New("out of order") }

// flat is an op whose gradient doesn't have the shape of its input.
type flat struct{ *elementwise }

func (op flat) SymDiff(_ G.Nodes, _, grad *G.Node) (G.Nodes, error) {
	n, err := G.Slice(grad, G.S(0, 2))
	return G.Nodes{n}, err
}

func vec(x ...float64) *tensor.Dense {
	return tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x))
}

// wave returns a tensor of distinct numbers of about unit size, none near 0.
func wave(shape ...int) *tensor.Dense {
	t := tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float64))
	for i := range t.Float64s() {
		t.Float64s()[i] = 0.3 + 0.7*float64(i*37%101)/101
		if i%3 == 1 {
			t.Float64s()[i] *= -1
		}
	}
	return t
}

func cube() *elementwise {
	return &elementwise{
		name: "cube",
		f:    func(_ int, x float64) float64 { return x * x * x },
		df:   func(_ int, x float64) float64 { return 3 * x * x },
	}
}

func sumOf(op *elementwise) func(*G.ExprGraph, G.Nodes) (*G.Node, error) {
	return func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) { return G.Sum(op.apply(nodes[0])) }
}

func bytesOf(t *tensor.Dense) string { return fmt.Sprintf("%v %x", t.Shape(), t.Data()) }

// lateFailure is an op that fails after several runs.
type lateFailure struct {
	*elementwise
	runs *int
}

func (op lateFailure) Do(inputs ...G.Value) (G.Value, error) {
	if *op.runs++; *op.runs > 5 { // before the first step, Check makes four runs: two with the gradient, two without it
		return nil, errors.New("worn out")
	}
	return op.elementwise.Do(inputs...)
}
