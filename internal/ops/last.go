package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Last returns vector counts[b]−1 of every sequence b, or zeros if counts[b] is 0. For x of shape (B, T, D) or (T, D),
// the result has shape (B, D) or (1, D). It has no gradient.
func Last(e *Env, x, counts *G.Node) (*G.Node, error) {
	const name = "last"
	s, err := sequencesOf(name, x)
	if err != nil {
		return nil, err
	}
	if err := hasShape(name, "the counts", counts, s[0]); err != nil {
		return nil, err
	}
	return byDtype(x, last[float32], last[float64])(e, x, counts, s)
}

func last[F kernel.Float](e *Env, x, counts *G.Node, s tensor.Shape) (*G.Node, error) {
	batch, length, width := s[0], s[1], s[2]
	o := newOp(fmt.Sprintf("last%v", s), tensor.Shape{batch, width}, func(out []F, values []G.Value) {
		x := elements[F](values[0], batch*length*width)
		counts := elements[int](values[1], batch)
		clear(out)
		for b, n := range counts {
			if n < 0 || n > length {
				fail("count %d of sequence %d isn't between 0 and %d", n, b, length)
			}
			if n > 0 {
				copy(out[b*width:][:width], x[(b*length+n-1)*width:])
			}
		}
	})
	return e.apply(o, x, counts)
}
