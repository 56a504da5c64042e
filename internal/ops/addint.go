package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// AddInt returns x + n for an int vector x of shape (B). Attention uses it to move the queries' offsets past n cached
// keys.
func AddInt(e *Env, x *G.Node, n int) (*G.Node, error) {
	if x.Dtype() != tensor.Int || x.Dims() != 1 {
		return nil, fmt.Errorf("add int: the input must be int of shape (B), got %v of shape %v", x.Dtype(), x.Shape())
	}
	if n != clampOffset(n) {
		return nil, fmt.Errorf("add int: the number to add must be from −%[2]d to %[2]d, got %[1]d", n, kernel.MaxOffset)
	}
	shape := x.Shape()
	return e.apply(newInts(fmt.Sprintf("add int%v(%d)", shape, n), shape, func(sum []int, values []G.Value) {
		for i, v := range elements[int](values[0], len(sum)) {
			if v != clampOffset(v) {
				fail("offset %d of batch element %d isn't between −%d and %[3]d", v, i, kernel.MaxOffset)
			}
			sum[i] = v + n
		}
	}), x)
}
