package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/memory"
)

// Relative defines how RelativeBias sorts distances into buckets.
type Relative struct {
	MaxDistance int  // distance from which on all distances of a direction share a bucket
	OneWay      bool // true: keys after their query have distance 0; false: they have the second half of the buckets
}

// bucket returns the bucket of a distance, a key's position minus its query's position (Raffel et al., 2020, T5). In
// each direction, half of the buckets hold one distance each, and the others hold ranges of distances that grow
// exponentially. The logarithm is computed in float32, as in T5, because rounding decides the ends of some ranges.
func (r Relative) bucket(distance, buckets int) int {
	first, back := 0, -distance
	if !r.OneWay {
		buckets /= 2
		if distance > 0 {
			first, back = buckets, distance
		}
	}
	back = max(back, 0)
	exact := buckets / 2
	if back < exact {
		return first + back
	}
	log := float32(math.Log(float64(float32(back)/float32(exact)))) / float32(math.Log(float64(r.MaxDistance)/float64(exact)))
	return first + min(exact+int(log*float32(buckets-exact)), buckets-1)
}

// Check returns an error if distances can't be sorted into this number of buckets.
func (r Relative) Check(name string, buckets int) error {
	directions := 2
	if r.OneWay {
		directions = 1
	}
	if buckets < 2*directions || buckets%directions != 0 {
		return fmt.Errorf("%s: there must be at least %d buckets, the same number for each direction, got %d", name, 2*directions, buckets)
	}
	if exact := buckets / directions / 2; r.MaxDistance <= exact {
		return fmt.Errorf("%s: MaxDistance must be above %d, because that many distances have their own bucket, got %d", name, exact, r.MaxDistance)
	}
	return nil
}

// RelativeBias looks up the bias of every query and key in a table of shape (buckets, H), by the bucket of their
// distance. The bias is added to scores. Keys have positions 0, 1, …. If positions is nil, queries have positions 0, 1,
// … too, and the result has shape (1, H, T, S). Otherwise positions holds the queries' positions, int of shape (B, T)
// or (T), and the result has shape (B, H, T, S). A position outside [0, S) is an error when the graph runs.
func RelativeBias(e *Env, table, positions *G.Node, queries, keys int, r Relative) (*G.Node, error) {
	const name = "relative bias"
	if err := CheckFloat(name, "the table", table); err != nil {
		return nil, err
	}
	if table.Dims() != 2 {
		return nil, fmt.Errorf("%s: the table must have shape (buckets, H), got %v", name, table.Shape())
	}
	if err := r.Check(name, table.Shape()[0]); err != nil {
		return nil, err
	}
	if queries < 1 || keys < 1 || positions == nil && queries > keys {
		return nil, fmt.Errorf("%s: there must be at least 1 query and 1 key and, without positions, no more queries than keys, got %d and %d", name, queries, keys)
	}
	batch := 1
	if positions != nil {
		ps := positions.Shape()
		if positions.Dtype() != tensor.Int || len(ps) < 1 || len(ps) > 2 || ps[len(ps)-1] != queries {
			return nil, fmt.Errorf("%s: the positions must be int of shape (B, %d) or (%d), got %v of shape %v", name, queries, queries, positions.Dtype(), ps)
		}
		batch, _ = rows(ps)
	}
	if err := memory.Check(memory.Product(batch, table.Shape()[1], queries, keys, int(table.Dtype().Size()))); err != nil {
		return nil, fmt.Errorf("%s: %d queries and %d keys: %w", name, queries, keys, err)
	}
	return ByDtype(table, relativeBias[float32], relativeBias[float64])(e, table, positions, batch, queries, keys, r)
}

func relativeBias[F kernel.Float](e *Env, table, positions *G.Node, batch, queries, keys int, r Relative) (*G.Node, error) {
	buckets, heads := table.Shape()[0], table.Shape()[1]
	shape := tensor.Shape{batch, heads, queries, keys}
	k := kernel.Relative{Heads: heads, Keys: keys, Buckets: make([]int, 2*keys-1)}
	for i := range k.Buckets {
		k.Buckets[i] = r.bucket(i-(keys-1), buckets)
	}
	if positions == nil {
		k.Positions = count(nil, 0, queries)
	}
	// read returns k. If positions are given, read sets k.Positions from values[1].
	read := func(values []G.Value) kernel.Relative {
		k := k
		if positions != nil {
			k.Positions = elements[int](values[1], batch*queries)
		}
		for _, p := range k.Positions {
			if p < 0 || p >= keys {
				fail("query position %d isn't between 0 and %d", p, keys-1)
			}
		}
		return k
	}
	var byDistance []F
	workspace := func() []F {
		if byDistance == nil {
			byDistance = make([]F, heads*len(k.Buckets))
		}
		return byDistance
	}
	o := newOp(fmt.Sprintf("relative bias%v%v%+v", table.Shape(), shape, r), shape, func(out []F, values []G.Value) {
		table := elements[F](values[0], buckets*heads)
		kernel.RelativeBias(e.Cores, out, table, workspace(), batch, read(values))
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp(fmt.Sprintf("relative bias.dtable%v%v%+v", table.Shape(), shape, r), table.Shape(), func(dt []F, values []G.Value) {
			g := elements[F](values[0], shape.TotalSize())
			kernel.RelativeBiasGrad(e.Cores, dt, g, workspace(), batch, read(values))
		}), g, positions))
	}
	return e.apply(o, table, positions)
}
