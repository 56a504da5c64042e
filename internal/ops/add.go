package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Add returns x + y for two nodes of the same shape.
func Add(e *Env, x, y *G.Node) (*G.Node, error) {
	if err := cmp.Or(sameDtype("add", "the second term", y, "the first term", x), hasShape("add", "the second term", y, x.Shape()...)); err != nil {
		return nil, err
	}
	return ByDtype(x, add[float32], add[float64])(e, x, y)
}

func add[F kernel.Float](e *Env, x, y *G.Node) (*G.Node, error) {
	shape := x.Shape()
	o := newOp(fmt.Sprintf("add%v", shape), shape, func(out []F, values []G.Value) {
		x, y := read2[F](values, len(out), len(out))
		kernel.Add(e.Cores, out, x, y)
	})
	o.wrt, o.grad = 2, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) { return G.Nodes{g, g}, nil }
	return e.apply(o, x, y, e.follow(o, x))
}

// AddRows adds the first rows of a table to x, again and again: x has shape (…, D), and the table (M, D). The number of
// x's rows must be a multiple of first, as T is of x with shape (B, T, D). The table's other rows have a gradient of
// zero.
func AddRows(e *Env, x, table *G.Node, first int) (*G.Node, error) {
	const name = "add rows"
	if err := sameDtype(name, "the table", table, "the input", x); err != nil {
		return nil, err
	}
	xs, ts := x.Shape(), table.Shape()
	if len(xs) < 1 || len(ts) != 2 || ts[1] != xs[len(xs)-1] {
		return nil, fmt.Errorf("%s: the input must have shape (…, D) and the table (M, D), got %v and %v", name, xs, ts)
	}
	if n, _ := rows(xs); first < 1 || first > ts[0] || n%first != 0 {
		return nil, fmt.Errorf("%s: the number of rows to add must be from 1 to the table's %d and divide the input's %d, got %d", name, ts[0], n, first)
	}
	return ByDtype(x, addRows[float32], addRows[float64])(e, x, table, first)
}

func addRows[F kernel.Float](e *Env, x, table *G.Node, first int) (*G.Node, error) {
	shape, tableShape := x.Shape(), table.Shape()
	used := first * tableShape[1] // number of elements in these rows
	o := newOp(fmt.Sprintf("add rows%v(%d)", shape, first), shape, func(out []F, values []G.Value) {
		x, table := read2[F](values, len(out), tableShape.TotalSize())
		copy(out, x)
		kernel.AddRow(e.Cores, out, table[:used])
	})
	o.wrt, o.grad = 2, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		dt := newOp(fmt.Sprintf("add rows.dtable%v%v(%d)", shape, tableShape, first), tableShape, func(dt []F, values []G.Value) {
			g := elements[F](values[0], shape.TotalSize())
			kernel.SumRows(e.Cores, dt[:used], g)
			clear(dt[used:])
		})
		if !e.wants(o.inputs[1]) {
			return G.Nodes{g}, nil
		}
		nt, err := e.apply(dt, g)
		return G.Nodes{g, nt}, err
	}
	return e.apply(o, x, table)
}
