package ops

import (
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// PositionIDs returns the position of every element of every sequence. The argument like is the shape of the result:
// (B, T), or (T) for a batch of one. The node positions is int. With shape (B), it holds the positions of the first
// elements; with shape (B, T), it holds all positions. The node counts is nil or has shape (B). If it is given, only
// the first counts[b] elements of sequence b are valid, and the others repeat the last valid position. If limit isn't
// 0, a position outside [0, limit) is an error when the graph runs. Errors begin with layer.
func PositionIDs(e *Env, positions, counts *G.Node, like tensor.Shape, layer string, limit int) (*G.Node, error) {
	batch, length := 1, like[len(like)-1]
	if len(like) == 2 {
		batch = like[0]
	}
	if err := checkPositions(layer, positions, batch, length); err != nil {
		return nil, err
	}
	ps := positions.Shape()
	o := newInts(fmt.Sprintf("position ids%v%v(%t,%d)", ps, like, counts != nil, limit), like.Clone(), func(ids []int, values []G.Value) {
		positions := elements[int](values[0], ps.TotalSize())
		counts := optional[int](values, 1, batch)
		for i := range ids {
			b, t := i/length, i%length
			switch {
			case len(ps) == 2:
				ids[i] = positions[i]
			case counts == nil:
				ids[i] = positions[b] + t
			default:
				ids[i] = max(positions[b]+min(t, counts[b]-1), 0)
			}
			if limit > 0 && (ids[i] < 0 || ids[i] >= limit) {
				fail("position %d of sequence %d isn't between 0 and %d", ids[i], b, limit-1)
			}
		}
	})
	o.layer = layer
	return e.apply(o, positions, counts)
}

// checkPositions checks that positions are int, and have shape (B) for first elements or (B, T) for all elements.
func checkPositions(name string, positions *G.Node, batch, length int) error {
	if s := positions.Shape(); positions.Dtype() != tensor.Int || !slices.Equal(s, []int{batch}) && !slices.Equal(s, []int{batch, length}) {
		return fmt.Errorf("%s: the positions must be int of shape (%d) or (%d, %d), got %v of shape %v", name, batch, batch, length, positions.Dtype(), s)
	}
	return nil
}

// AddWaves adds sinusoidal position encodings (Vaswani et al., 2017, section 3.5) to x of shape (…, T, D). The node ids
// has shape (…, T) and holds the positions; if it is nil, row t of every sequence has position t. At position p,
// AddWaves adds sin(p/base^(i/D)) to element i if i is even, and cos(p/base^(i/D)) to element i+1. With halves, all
// sines come first, and then all cosines.
func AddWaves(e *Env, x, ids *G.Node, base float64, halves bool) (*G.Node, error) {
	return ByDtype(x, addWaves[float32], addWaves[float64])(e, x, ids, base, halves)
}

func addWaves[F kernel.Float](e *Env, x, ids *G.Node, base float64, halves bool) (*G.Node, error) {
	shape := x.Shape()
	n, dim := rows(shape)
	if ids == nil {
		n = shape[len(shape)-2]
	}
	var known []int // the positions of the rows of waves
	waves, fromZero := make([]F, n*dim), count(nil, 0, n)
	o := newOp(fmt.Sprintf("add waves%v(%v,%t,%t)", shape, base, ids != nil, halves), shape, func(out []F, values []G.Value) {
		x, ids := elements[F](values[0], len(out)), fromZero
		if len(values) > 1 {
			ids = elements[int](values[1], n)
		}
		if !slices.Equal(known, ids) {
			known = append(known[:0], ids...)
			for i := range waves {
				element := i % dim
				if halves {
					if element *= 2; element >= dim { // all even elements come first, and then all odd ones
						element = (element - dim) | 1
					}
				}
				waves[i] = F(wave(ids[i/dim], element, dim, base))
			}
		}
		copy(out, x)
		kernel.AddRow(e.Cores, out, waves)
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) { return G.Nodes{g}, nil }
	return e.apply(o, x, ids)
}

// wave returns the number that AddWaves adds to element i of a vector of dim elements.
func wave(position, i, dim int, base float64) float64 {
	angle := float64(position) / math.Pow(base, float64(i-i%2)/float64(dim))
	if i%2 == 0 {
		return math.Sin(angle)
	}
	return math.Cos(angle)
}
