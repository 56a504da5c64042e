package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// elements returns the elements of a value in row-major order. It is an error for the value to have another dtype or
// another number of elements than the graph was built for: a caller may bind any tensor to an input node.
func elements[T any](v G.Value, want int) ([]T, error) {
	var data any
	switch t := v.(type) {
	case nil:
		return nil, fmt.Errorf("an input has no value: bind one with gorgonia.Let before running")
	case *tensor.Dense:
		if t.RequiresIterator() || t.DataOrder().IsColMajor() {
			c, ok := t.Materialize().(*tensor.Dense)
			if !ok || c.DataOrder().IsColMajor() {
				return nil, fmt.Errorf("an input of shape %v isn't laid out in rows: pass a copy that is", t.Shape())
			}
			t = c
		}
		data = t.Data()
	default:
		data = v.Data()
	}
	switch d := data.(type) {
	case []T:
		if len(d) != want {
			return nil, fmt.Errorf("the graph was built for an input of %d elements, got %d (shape %v)", want, len(d), v.Shape())
		}
		return d, nil
	case T:
		if want != 1 {
			return nil, fmt.Errorf("the graph was built for an input of %d elements, got a scalar", want)
		}
		return []T{d}, nil
	}
	var zero T
	return nil, fmt.Errorf("the graph was built for an input of %T, got %v", zero, v.Dtype())
}

// read2 is elements for two inputs of one dtype.
func read2[F kernel.Float](in []G.Value, n0, n1 int) (a, b []F, err error) {
	if a, err = elements[F](in[0], n0); err != nil {
		return nil, nil, err
	}
	b, err = elements[F](in[1], n1)
	return a, b, err
}

// read3 is elements for three inputs of one dtype.
func read3[F kernel.Float](in []G.Value, n0, n1, n2 int) (a, b, c []F, err error) {
	if a, b, err = read2[F](in, n0, n1); err != nil {
		return nil, nil, nil, err
	}
	c, err = elements[F](in[2], n2)
	return a, b, c, err
}

// floatNode checks that a node is there and holds float32 or float64.
func floatNode(op, what string, n *G.Node) error {
	if n == nil {
		return fmt.Errorf("%s: %s is nil", op, what)
	}
	if dt := n.Dtype(); dt != tensor.Float32 && dt != tensor.Float64 {
		return fmt.Errorf("%s: %s must be float32 or float64, got %v", op, what, dt)
	}
	return nil
}

// sameDtype checks that a node is there and has the dtype of another.
func sameDtype(op, what string, n *G.Node, as string, ref *G.Node) error {
	if err := floatNode(op, what, n); err != nil {
		return err
	}
	if n.Dtype() != ref.Dtype() {
		return fmt.Errorf("%s: %s must have the dtype of %s, %v, got %v", op, what, as, ref.Dtype(), n.Dtype())
	}
	return nil
}

// hasShape checks a node's shape.
func hasShape(op, what string, n *G.Node, want ...int) error {
	if s := n.Shape(); !equalShapes(s, want) {
		return fmt.Errorf("%s: %s must have shape %v, got %v", op, what, tensor.Shape(want), s)
	}
	return nil
}

// equalShapes compares shapes axis by axis. (tensor.Shape.Eq also takes some vectors for equal to matrices.)
func equalShapes(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// rows splits a shape into its last axis and the number of rows of that width.
func rows(s tensor.Shape) (n, width int) {
	width = s[len(s)-1]
	n = 1
	for _, d := range s[:len(s)-1] {
		n *= d
	}
	return n, width
}
