package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Shift moves the ids of sequences, int of shape (B, T) or (T), one place to the right: the id first comes in front,
// and the last id is left out.
func Shift(e *Env, ids *G.Node, first int) (*G.Node, error) {
	if ids.Dtype() != tensor.Int || ids.Dims() < 1 || ids.Dims() > 2 {
		return nil, fmt.Errorf("shift: the ids must be int, of shape (T) or (B, T), got %v of shape %v", ids.Dtype(), ids.Shape())
	}
	rows, size := ids.Shape()[ids.Dims()-1], ids.Shape().TotalSize()
	return e.apply(newInts(fmt.Sprintf("shift%v(%d)", ids.Shape(), first), ids.Shape().Clone(), func(shifted []int, values []G.Value) {
		ids := elements[int](values[0], size)
		for i := range shifted {
			if shifted[i] = first; i%rows > 0 {
				shifted[i] = ids[i-1]
			}
		}
	}), ids)
}
