package ops

import (
	"bytes"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Store keeps the keys or the values of a layer from run to run, even if the runs are of different graphs. For each
// of B sequences, it holds up to Max vectors of width W. Append adds vectors.
type Store struct {
	name  string
	shape tensor.Shape // (B, Max, W)
	dense *tensor.Dense
}

// NewStore makes a Store. Stores used in one graph need different names.
func NewStore(name string, dtype tensor.Dtype, batch, length, width int) *Store {
	shape := tensor.Shape{batch, length, width}
	return &Store{name, shape, tensor.New(tensor.Of(dtype), tensor.WithShape(shape...))}
}

// Append writes new vectors to the store and returns all vectors of the store. Sequence b of the store already holds
// lengths[b] vectors; Append writes the first counts[b] vectors of x's sequence b after them. The nodes lengths and
// counts are int of shape (B). If x has shape (B, T, W), the result has shape (B, Max, W). If x has shape (T, W), for a
// batch of one, the result has shape (Max, W). The result has no gradient.
func (s *Store) Append(e *Env, x, lengths, counts *G.Node) (*G.Node, error) {
	name := "store of " + s.name
	if err := CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	xs := x.Shape()
	r := len(xs)
	if x.Dtype() != s.dense.Dtype() || r < 2 || r > 3 || r == 3 && xs[0] != s.shape[0] || r == 2 && s.shape[0] != 1 || xs[r-1] != s.shape[2] || xs[r-2] > s.shape[1] {
		return nil, fmt.Errorf("%s: the input must be %v of shape (%d, T, %d) with T at most %d, got %v of shape %v",
			name, s.dense.Dtype(), s.shape[0], s.shape[2], s.shape[1], x.Dtype(), xs)
	}
	return ByDtype(x, storeAppend[float32], storeAppend[float64])(e, s, x, lengths, counts)
}

func storeAppend[F kernel.Float](e *Env, s *Store, x, lengths, counts *G.Node) (*G.Node, error) {
	xs := x.Shape()
	out := s.value(len(xs))
	batch, limit, width := s.shape[0], s.shape[1], s.shape[2]
	length := xs[len(xs)-2]
	o := &op{
		name: fmt.Sprintf("store of %s%v%v", s.name, xs, s.shape), shape: out.Shape().Clone(), out: typeOf(dtypeOf[F](), out.Shape()),
		run: func(values []G.Value) G.Value {
			x := elements[F](values[0], batch*length*width)
			lengths := elements[int](values[1], batch)
			counts := elements[int](values[2], batch)
			if slices.Max(counts) == 0 {
				fail("no sequence gets a new vector: set the counts before the run")
			}
			stored := elementsOf[F](s.dense)
			for b, n := range counts {
				if held := lengths[b]; n < 0 || n > length || held < 0 || held+n > limit {
					fail("sequence %d has %d vectors and should get %d of %d new vectors, but the store holds at most %d vectors per sequence", b, held, n, length, limit)
				}
				copy(stored[(b*limit+lengths[b])*width:], x[b*length*width:][:n*width])
			}
			return out
		},
	}
	return e.apply(o, x, lengths, counts)
}

// value returns the store's memory as a tensor. It has 3 axes, or 2 if dims is 2, which drops the batch axis.
func (s *Store) value(dims int) *tensor.Dense {
	shape := s.shape
	if dims == 2 {
		shape = shape[1:]
	}
	backing := ByDtype[any](s.dense, elementsOf[float32](s.dense), elementsOf[float64](s.dense))
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing))
}

// Reorder copies the first lengths[parents[b]] vectors of sequence parents[b] to every sequence b.
func (s *Store) Reorder(parents, lengths []int) {
	stride := len(s.dense.Raw) / s.shape[0]
	copies := make([][]byte, len(parents)) // copied before any of them is overwritten
	for b, from := range parents {
		if from != b {
			copies[b] = bytes.Clone(s.dense.Raw[from*stride:][:lengths[from]*(stride/s.shape[1])])
		}
	}
	for b, c := range copies {
		copy(s.dense.Raw[b*stride:], c)
	}
}
