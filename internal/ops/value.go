package ops

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// An inputError is an error of an op's input. Functions that run ops panic with it, and op.Do returns it.
type inputError struct{ error }

// fail panics with an inputError.
func fail(format string, args ...any) { panic(inputError{fmt.Errorf(format, args...)}) }

// elements returns the elements of an op's input in row-major order. It panics with an inputError if the dtype isn't T
// or the number of elements isn't want, because a caller may bind any tensor to an input node.
func elements[T any](v G.Value, want int) []T {
	d, ok := v.(*tensor.Dense)
	var out []T
	switch {
	case v == nil:
		fail("an input has no value: bind one with gorgonia.Let before running")
	case !ok: // a Gorgonia scalar
		if x, ok := v.Data().(T); ok {
			out = []T{x}
		}
	case InRows(d):
		out = elementsOf[T](d)
	default:
		c, ok := d.Materialize().(*tensor.Dense)
		if !ok || c.DataOrder().IsColMajor() {
			fail("an input of shape %v isn't laid out in rows: pass a copy that is", d.Shape())
		}
		out = elementsOf[T](c)
	}
	if len(out) != want {
		fail("the graph was built for an input of %d %Ts, got %v of shape %v", want, *new(T), v.Dtype(), v.Shape())
	}
	return out
}

// optional calls elements for input i. It returns nil if there is no such input.
func optional[T any](values []G.Value, i, want int) []T {
	if i >= len(values) {
		return nil
	}
	return elements[T](values[i], want)
}

// InRows reports whether a tensor's elements lie in memory row by row without gaps. The elements of a transposed tensor
// don't.
func InRows(d *tensor.Dense) bool { return !d.RequiresIterator() && !d.DataOrder().IsColMajor() }

// elementsOf returns a tensor's elements, or nil if T isn't its dtype. It doesn't call Dense.Data, which allocates.
func elementsOf[T any](d *tensor.Dense) []T {
	var out []T
	switch p := any(&out).(type) {
	case *[]float32:
		if d.Dtype() == tensor.Float32 {
			*p = d.Float32s()
		}
	case *[]float64:
		if d.Dtype() == tensor.Float64 {
			*p = d.Float64s()
		}
	case *[]int:
		if d.Dtype() == tensor.Int {
			*p = d.Ints()
		}
	case *[]bool:
		if d.Dtype() == tensor.Bool {
			*p = d.Bools()
		}
	}
	return out
}

// read2 calls elements for two inputs.
func read2[F kernel.Float](values []G.Value, n0, n1 int) (a, b []F) {
	return elements[F](values[0], n0), elements[F](values[1], n1)
}

// read3 calls elements for three inputs.
func read3[F kernel.Float](values []G.Value, n0, n1, n2 int) (a, b, c []F) {
	return elements[F](values[0], n0), elements[F](values[1], n1), elements[F](values[2], n2)
}

// CheckFloat checks that a node holds float32 or float64.
func CheckFloat(op, what string, n *G.Node) error {
	if dt := n.Dtype(); dt != tensor.Float32 && dt != tensor.Float64 {
		return fmt.Errorf("%s: %s must be float32 or float64, got %v", op, what, dt)
	}
	return nil
}

// CheckRate checks a dropout probability.
func CheckRate(op string, p float64) error {
	if !(p >= 0 && p < 1) {
		return fmt.Errorf("%s: the dropout probability must be at least 0 and below 1, got %v", op, p)
	}
	return nil
}

// sameDtype checks that the nodes n and ref have the same dtype, float32 or float64.
func sameDtype(op, what string, n *G.Node, as string, ref *G.Node) error {
	if err := cmp.Or(CheckFloat(op, as, ref), CheckFloat(op, what, n)); err != nil {
		return err
	}
	if n.Dtype() != ref.Dtype() {
		return fmt.Errorf("%s: %s must have the dtype of %s, %v, got %v", op, what, as, ref.Dtype(), n.Dtype())
	}
	return nil
}

// sequencesOf checks that x holds the vectors of sequences, and returns its shape as (B, T, D), with B = 1 for (T, D).
func sequencesOf(op string, x *G.Node) (tensor.Shape, error) {
	if err := CheckFloat(op, "the input", x); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) == 2 {
		s = append(tensor.Shape{1}, s...)
	}
	if len(s) != 3 {
		return nil, fmt.Errorf("%s: the input must have shape (B, T, D) or (T, D), got %v", op, s)
	}
	return s, nil
}

// hasShape checks a node's shape.
func hasShape(op, what string, n *G.Node, want ...int) error {
	if s := n.Shape(); !slices.Equal(s, want) {
		return fmt.Errorf("%s: %s must have shape %v, got %v", op, what, tensor.Shape(want), s)
	}
	return nil
}

// sameLayout reports whether two shapes are equal, apart from axes of size 1, which Gorgonia adds and drops.
func sameLayout(a, b []int) bool {
	for {
		for len(a) > 0 && a[0] == 1 {
			a = a[1:]
		}
		for len(b) > 0 && b[0] == 1 {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 || a[0] != b[0] {
			return len(a) == 0 && len(b) == 0
		}
		a, b = a[1:], b[1:]
	}
}

// rows returns the size of a shape's last axis, the width, and the number of rows of this width.
func rows(s tensor.Shape) (n, width int) {
	return volume(s[:len(s)-1]), s[len(s)-1]
}

// volume returns the product of axes' sizes.
func volume(axes []int) int {
	n := 1
	for _, size := range axes {
		n *= size
	}
	return n
}
