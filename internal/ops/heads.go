package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// SplitHeads turns (B, T, H·K) into (B, H, T, K), and (T, H·K) into (1, H, T, K).
func SplitHeads(e *Env, x *G.Node, heads int) (*G.Node, error) {
	if err := CheckFloat("split heads", "the input", x); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) == 2 {
		s = append(tensor.Shape{1}, s...)
	}
	if len(s) != 3 || heads < 1 || s[2]%heads != 0 {
		return nil, fmt.Errorf("split heads: the input must have shape (B, T, D) or (T, D) with D a multiple of %d heads, got %v", heads, x.Shape())
	}
	return swapAxes(e, x, tensor.Shape{s[0], heads, s[1], s[2] / heads}, s[0], s[1], heads, s[2]/heads)
}

// MergeHeads turns (B, H, T, K) into (B, T, H·K). If batch is false, it turns (1, H, T, K) into (T, H·K).
func MergeHeads(e *Env, x *G.Node, batch bool) (*G.Node, error) {
	if err := CheckFloat("merge heads", "the input", x); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) != 4 || !batch && s[0] != 1 {
		return nil, fmt.Errorf("merge heads: the input must have shape (B, H, T, K), or (1, H, T, K) for a result without a batch axis, got %v", s)
	}
	shape := tensor.Shape{s[0], s[2], s[1] * s[3]}
	if !batch {
		shape = shape[1:]
	}
	return swapAxes(e, x, shape, s[0], s[1], s[2], s[3])
}

// SwapLast turns (B, T, D) into (B, D, T).
func SwapLast(e *Env, x *G.Node) (*G.Node, error) {
	if err := CheckFloat("swap last", "the input", x); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) != 3 {
		return nil, fmt.Errorf("swap last: the input must have shape (B, T, D), got %v", s)
	}
	return swapAxes(e, x, tensor.Shape{s[0], s[2], s[1]}, s[0], s[1], s[2], 1)
}

// swapAxes treats x as an array of shape (n, a, b, width) and swaps the axes a and b. The result has the given shape.
func swapAxes(e *Env, x *G.Node, shape tensor.Shape, n, a, b, width int) (*G.Node, error) {
	return ByDtype(x, swapAxesOf[float32], swapAxesOf[float64])(e, x, shape, n, a, b, width)
}

func swapAxesOf[F kernel.Float](e *Env, x *G.Node, shape tensor.Shape, n, a, b, width int) (*G.Node, error) {
	o := newOp(fmt.Sprintf("swap axes%v(%d,%d,%d,%d)", shape, n, a, b, width), shape, func(y []F, values []G.Value) {
		x := elements[F](values[0], len(y))
		kernel.SwapAxes(e.Cores, y, x, n, a, b, width)
	})
	o.wrt, o.grad = 1, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(swapAxes(e, g, inputs[0].Shape(), n, b, a, width))
	}
	return e.apply(o, x)
}
