package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Unpadded returns the lengths of sequences without the ids equal to pad at their ends, as an int vector of shape (B).
// Of a sequence with nothing but pad, one id counts. The ids have shape (B, T) or (T). Sequence b has lengths[b] ids,
// or T if lengths is nil.
func Unpadded(e *Env, ids, lengths *G.Node, pad int) (*G.Node, error) {
	const name = "unpadded"
	if ids.Dtype() != tensor.Int || ids.Dims() < 1 || ids.Dims() > 2 {
		return nil, fmt.Errorf("%s: the ids must be int, of shape (T) or (B, T), got %v of shape %v", name, ids.Dtype(), ids.Shape())
	}
	batch, rows := 1, ids.Shape()[ids.Dims()-1]
	if ids.Dims() == 2 {
		batch = ids.Shape()[0]
	}
	return e.apply(newInts(fmt.Sprintf("%s%v(%d,%t)", name, ids.Shape(), pad, lengths != nil), tensor.Shape{batch}, func(left []int, values []G.Value) {
		ids, lengths := elements[int](values[0], batch*rows), optional[int](values, 1, batch)
		for b := range left {
			n := rows
			if lengths != nil {
				n = lengths[b]
			}
			if n < 0 || n > rows {
				fail("length %d of batch element %d isn't between 0 and the %d positions", n, b, rows)
			}
			for n > 1 && ids[b*rows+n-1] == pad {
				n--
			}
			left[b] = n
		}
	}), ids, lengths)
}
