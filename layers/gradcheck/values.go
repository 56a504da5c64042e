package gradcheck

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// cells gives access to the entries of a float64 value, in row-major order. It doesn't copy the entries.
type cells struct {
	name   string
	shape  tensor.Shape
	scalar *float64  // the value if it is a Gorgonia scalar, else nil
	data   []float64 // a tensor's memory
	offset []int     // the index in data of each entry; nil if data is in row-major order
}

// newCells returns the cells of v, a Gorgonia scalar or a dense tensor. The tensor may be a view or a transpose.
func newCells(name string, v G.Value) (*cells, error) {
	switch v := v.(type) {
	case *G.F64:
		return &cells{name: name, shape: tensor.ScalarShape(), scalar: (*float64)(v)}, nil
	case *tensor.Dense:
		if v.Dtype() != tensor.Float64 {
			return nil, fmt.Errorf("%s is %v: only float64 can be checked", name, v.Dtype())
		}
		c := &cells{name: name, shape: v.Shape().Clone(), data: v.Float64s()}
		if !ops.InRows(v) {
			for it := v.Iterator(); ; {
				i, err := it.Next()
				if err != nil { // the end
					return c, nil
				}
				c.offset = append(c.offset, i)
			}
		}
		return c, nil
	case nil:
		return nil, fmt.Errorf("%s has no value: bind one with WithValue or Let", name)
	default:
		return nil, fmt.Errorf("%s is a %T: only float64 scalars and dense tensors can be checked", name, v)
	}
}

func (c *cells) len() int { return c.shape.TotalSize() }

// at returns a pointer to entry i.
func (c *cells) at(i int) *float64 {
	switch {
	case c.scalar != nil:
		return c.scalar
	case c.offset != nil:
		return &c.data[c.offset[i]]
	default:
		return &c.data[i]
	}
}

// index returns the index of entry i in the tensor: empty, not nil, for a scalar.
func (c *cells) index(i int) []int {
	index := make([]int, len(c.shape))
	for axis := len(index) - 1; axis >= 0; axis-- {
		index[axis] = i % c.shape[axis]
		i /= c.shape[axis]
	}
	return index
}

// copy returns the entries' values in order.
func (c *cells) copy() []float64 {
	values := make([]float64, c.len())
	for i := range values {
		values[i] = *c.at(i)
	}
	return values
}

// A snapshot holds a copy of an input's value.
type snapshot struct {
	name    string
	same    func() bool // reports whether all bits of the value are the same as before
	restore func()
}

// newSnapshot copies v. It returns false if v has no memory that an op could write to.
func newSnapshot(name string, v G.Value) (snapshot, bool) {
	switch v := v.(type) {
	case *G.F64:
		was := *v
		return snapshot{
			name:    name,
			same:    func() bool { return math.Float64bits(float64(was)) == math.Float64bits(float64(*v)) },
			restore: func() { *v = was },
		}, true
	case *tensor.Dense:
		was := bytes.Clone(v.Raw)
		return snapshot{
			name:    name,
			same:    func() bool { return bytes.Equal(v.Raw, was) },
			restore: func() { copy(v.Raw, was) },
		}, true
	}
	return snapshot{}, false
}

// sameBits compares numbers by their bits: two NaNs may differ, and −0 differs from 0.
func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}
