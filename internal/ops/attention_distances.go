package ops

import (
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Distances adds products with vectors of distances to the scores of attention, before the scale: see
// kernel.Distances.
type Distances struct {
	Keys    *G.Node // (R, G·K): multiplied with the queries; nil for none
	Queries *G.Node // (R, H·K): multiplied with the keys; nil for none
	DistanceBuckets
}

// DistanceBuckets sorts distances into R = 2·Span() rows, as DeBERTa does. The distance of a key is the query's
// position minus the key's.
type DistanceBuckets struct {
	Buckets     int // rows per direction; 0 means one for each distance below MaxDistance
	MaxDistance int // distance from which on all distances of a direction share a row
}

// maxDistance is the largest MaxDistance, for which the list of rows takes 16 MiB.
const maxDistance = 1 << 20

// Check returns an error if distances can't be sorted.
func (d DistanceBuckets) Check(name string) error {
	switch {
	case d.Buckets < 0 || d.Buckets%2 != 0:
		return fmt.Errorf("%s: Buckets must be an even number, or 0 for one row per distance, got %d", name, d.Buckets)
	case d.MaxDistance < d.Buckets/2+2 || d.MaxDistance > maxDistance:
		return fmt.Errorf("%s: MaxDistance must be from %d to %d with %d buckets, got %d", name, d.Buckets/2+2, maxDistance, d.Buckets, d.MaxDistance)
	}
	return nil
}

// Span returns the number of rows per direction.
func (d DistanceBuckets) Span() int {
	if d.Buckets > 0 {
		return d.Buckets
	}
	return d.MaxDistance
}

// bucket returns the bucket of a distance of at least 0. The first half of the buckets hold one distance each, and the
// others hold ranges that grow exponentially. The logarithm is computed in float32, as in the reference library.
func (d DistanceBuckets) bucket(distance int) int {
	middle := d.Buckets / 2
	if d.Buckets == 0 || distance <= middle {
		return distance
	}
	log := func(x float32) float32 { return float32(math.Log(float64(x))) }
	share := log(float32(distance)/float32(middle)) / log(float32(float64(d.MaxDistance-1)/float64(middle)))
	return middle + int(math.Ceil(float64(share*float32(middle-1))))
}

// rows returns the rows of the distances −MaxDistance to MaxDistance. The distance 0 has row Span().
func (d DistanceBuckets) rows() []int {
	rows, span := make([]int, 2*d.MaxDistance+1), d.Span()
	for x := range d.MaxDistance + 1 {
		b := d.bucket(x)
		rows[d.MaxDistance+x], rows[d.MaxDistance-x] = min(span+b, 2*span-1), max(span-b, 0)
	}
	return rows
}

// nodes returns the nodes that there are.
func (d *Distances) nodes() G.Nodes {
	if d == nil {
		return nil
	}
	return slices.DeleteFunc(G.Nodes{d.Keys, d.Queries}, func(n *G.Node) bool { return n == nil })
}

// String describes d in the names of ops.
func (d *Distances) String() string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf(" distances(%t,%t,%v)", d.Keys != nil, d.Queries != nil, d.DistanceBuckets)
}

// check checks d for operands of the given layout.
func (d *Distances) check(name string, l attentionLayout, q *G.Node) error {
	if d == nil {
		return nil
	}
	if err := d.Check(name); err != nil {
		return err
	}
	for _, x := range []struct {
		what  string
		n     *G.Node
		heads int
	}{{"Distances.Keys", d.Keys, l.groups}, {"Distances.Queries", d.Queries, l.heads}} {
		if x.n == nil {
			continue
		}
		if err := sameDtype(name, x.what, x.n, "the query", q); err != nil {
			return err
		}
		if err := hasShape(name, x.what, x.n, 2*d.Span(), x.heads*l.width); err != nil {
			return err
		}
	}
	return nil
}

// kernelDistances returns d for a kernel, without values.
func kernelDistances[F kernel.Float](d *Distances) *kernel.Distances[F] {
	if d == nil {
		return nil
	}
	return &kernel.Distances[F]{Rows: d.rows()}
}

// readDistances sets the vectors of k to the values of d.nodes(), and their gradients to grads, which may be nil.
func readDistances[F kernel.Float](k *kernel.Distances[F], d *Distances, values []G.Value, grads [][]F) {
	if d == nil {
		return
	}
	i := 0
	for _, x := range []struct {
		n            *G.Node
		vectors, dto *[]F
	}{{d.Keys, &k.Keys, &k.DKeys}, {d.Queries, &k.Queries, &k.DQueries}} {
		if x.n == nil {
			continue
		}
		if *x.vectors = elements[F](values[i], x.n.Shape().TotalSize()); grads != nil {
			*x.dto = grads[i]
		}
		i++
	}
}

// DistanceScores returns the products that c.Distances adds to the scores, of the scores' shape, or nil if there are
// none.
func DistanceScores(e *Env, c AttentionInputs) (*G.Node, error) {
	if c.Distances.nodes() == nil {
		return nil, nil
	}
	return ByDtype(c.Query, distanceScores[float32], distanceScores[float64])(e, c)
}

func distanceScores[F kernel.Float](e *Env, c AttentionInputs) (*G.Node, error) {
	l, terms := c.layout, c.Distances.nodes()
	mask := inputsOf[F](Mask{Offset: c.Mask.Offset, Offsets: c.Mask.Offsets}, l.scores)
	s := mask.known.Shape
	k := kernel.Attention[F]{Width: l.width, Groups: l.groups, Scale: F(c.Scale), Distances: kernelDistances[F](c.Distances)}
	operands := func(values []G.Value, grads [][]F) (q, key kernel.Rows[F]) {
		qs, ks := read2[F](values, s[0]*l.heads*s[2]*l.width, s[0]*l.groups*s[3]*l.width)
		readDistances(k.Distances, c.Distances, values[2:], grads)
		k.Mask = mask.read(values[2+len(terms):])
		return vectorsOf(c, qs, l.heads, s[2], l.width), vectorsOf(c, ks, l.groups, s[3], l.width)
	}
	attrs := fmt.Sprintf("%v%v(%d,%d,%v)%v%v", c.Query.Shape(), c.Key.Shape(), c.Heads, c.KeyValueHeads, c.Scale, mask.Mask, c.Distances)
	o := newOp("distance scores"+attrs, l.scores, func(out []F, values []G.Value) {
		q, key := operands(values, nil)
		k.DistanceScores(e.Cores, q, key, out)
	})
	o.layer = c.Name
	inputs := append(G.Nodes{c.Query, c.Key}, terms...)
	var shapes []tensor.Shape
	for _, n := range inputs {
		shapes = append(shapes, n.Shape())
	}
	o.wrt, o.grad = len(inputs), func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		given := len(inputs)
		return joint(e, "distance scores.grad"+attrs, o.DiffWRT(len(shapes)), shapes, append(inputs[:given:given], g), nil, nil, func(d [][]F, values []G.Value) {
			q, key := operands(values, d[2:])
			g := elements[F](values[given], l.scores.TotalSize())
			k.DistanceScoresGrad(e.Cores, q, key, g, vectorsOf(c, d[0], l.heads, s[2], l.width), vectorsOf(c, d[1], l.groups, s[3], l.width))
		})
	}
	return e.apply(o, append(inputs, mask.nodes...)...)
}

// vectorsOf returns the vectors of an operand of attention.
func vectorsOf[F kernel.Float](c AttentionInputs, data []F, heads, length, width int) kernel.Rows[F] {
	if c.Heads > 0 {
		return kernel.SideRows(data, heads, length, width)
	}
	return kernel.HeadRows(data, heads, length, width)
}
