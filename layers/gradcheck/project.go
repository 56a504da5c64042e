package gradcheck

import (
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Project reduces y, a float64 node of any shape, to the scalar Σ wᵢyᵢ, so that Check and Expr can check expressions
// that aren't scalar. The seed determines the weights wᵢ. Each weight has a random sign and an absolute value in [0.5,
// 1.5). A plain sum could hide errors: the gradient of the sum of a softmax is zero.
//
// Project has an op with a derivative of its own, because gorgonia.Sum is wrong for 4-D tensors.
func Project(y *G.Node, seed uint64) (*G.Node, error) {
	if y.Dtype() != tensor.Float64 {
		return nil, fmt.Errorf("gradcheck: Project: %s must be float64, got %v", y.Name(), y.Dtype())
	}
	n, err := G.ApplyOp(newProjection(y.Shape(), seed), y)
	if err != nil {
		return nil, fmt.Errorf("gradcheck: Project: %w", err)
	}
	return n, nil
}

// projection is the weighted sum, or its transpose, which maps a scalar g to the tensor g·w. Each is the derivative of
// the other.
type projection struct {
	shape     tensor.Shape
	seed      uint64
	weights   []float64
	transpose bool
}

func newProjection(shape tensor.Shape, seed uint64) *projection {
	op := &projection{shape: shape, seed: seed, weights: make([]float64, shape.TotalSize())}
	r := rand.New(rand.NewPCG(seed, 0xd1b54a32d192ed03))
	for i := range op.weights {
		op.weights[i] = 0.5 + r.Float64()
		if r.Uint64()&1 == 1 {
			op.weights[i] = -op.weights[i]
		}
	}
	return op
}

// Do computes Σ wᵢyᵢ from y, or g·w from g.
func (op *projection) Do(inputs ...G.Value) (G.Value, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("%v takes 1 input, got %d", op, len(inputs))
	}
	input, err := newCells("the input of "+op.String(), inputs[0])
	if err != nil {
		return nil, err
	}
	if op.transpose {
		if input.len() != 1 {
			return nil, fmt.Errorf("%s must be a scalar, got shape %v", input.name, input.shape)
		}
		return op.scale(*input.at(0)), nil
	}
	if !slices.Equal(input.shape, op.shape) {
		return nil, fmt.Errorf("%s must have shape %v, got %v", input.name, op.shape, input.shape)
	}
	sum := 0.0
	for i, w := range op.weights {
		sum += w * *input.at(i)
	}
	return G.NewF64(sum), nil
}

func (op *projection) scale(g float64) G.Value {
	scaled := make([]float64, len(op.weights))
	for i, w := range op.weights {
		scaled[i] = g * w
	}
	if op.shape.IsScalar() {
		return G.NewF64(scaled[0])
	}
	return tensor.New(tensor.WithShape(op.shape...), tensor.WithBacking(scaled))
}

func (op *projection) DiffWRT(inputs int) []bool { return slices.Repeat([]bool{true}, inputs) }

// SymDiff applies the transpose to the gradient.
func (op *projection) SymDiff(_ G.Nodes, _, grad *G.Node) (G.Nodes, error) {
	back := *op
	back.transpose = !op.transpose
	n, err := G.ApplyOp(&back, grad)
	return G.Nodes{n}, err
}

func (op *projection) Arity() int { return 1 }

func (op *projection) Type() hm.Type {
	var whole hm.Type = tensor.Float64
	if !op.shape.IsScalar() {
		whole = G.TensorType{Dims: len(op.shape), Of: tensor.Float64}
	}
	if op.transpose {
		return hm.NewFnType(tensor.Float64, whole)
	}
	return hm.NewFnType(whole, tensor.Float64)
}

func (op *projection) InferShape(...G.DimSizer) (tensor.Shape, error) {
	if op.transpose {
		return op.shape.Clone(), nil
	}
	return tensor.ScalarShape(), nil
}

func (op *projection) ReturnsPtr() bool     { return false }
func (op *projection) CallsExtern() bool    { return false }
func (op *projection) OverwritesInput() int { return -1 }

func (op *projection) WriteHash(h hash.Hash) { io.WriteString(h, op.String()) }

func (op *projection) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

func (op *projection) String() string {
	if op.transpose {
		return fmt.Sprintf("gradcheck.Projectᵀ%v(seed %d)", op.shape, op.seed)
	}
	return fmt.Sprintf("gradcheck.Project%v(seed %d)", op.shape, op.seed)
}
