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
	return byDtype(x, add[float32], add[float64])(e, x, y)
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

// AddRows adds row t of a table to position t of every sequence: x has shape (T, D) or (B, T, D), and the table has
// shape (M, D) with M ≥ T. Table rows T to M−1 have a gradient of zero.
func AddRows(e *Env, x, table *G.Node) (*G.Node, error) {
	const name = "add rows"
	if err := sameDtype(name, "the table", table, "the input", x); err != nil {
		return nil, err
	}
	xs, ts := x.Shape(), table.Shape()
	if len(xs) != 2 && len(xs) != 3 || len(ts) != 2 || ts[1] != xs[len(xs)-1] {
		return nil, fmt.Errorf("%s: the input must have shape (T, D) or (B, T, D) and the table (M, D), got %v and %v", name, xs, ts)
	}
	if t := xs[len(xs)-2]; t > ts[0] {
		return nil, fmt.Errorf("%s: a sequence of %d positions is longer than the table of %d", name, t, ts[0])
	}
	return byDtype(x, addRows[float32], addRows[float64])(e, x, table, xs[len(xs)-2])
}

// AddFirstRow adds the first row of a table to every vector: x has shape (…, D), and the table (M, D). The table's
// other rows have a gradient of zero.
func AddFirstRow(e *Env, x, table *G.Node) (*G.Node, error) {
	const name = "add the first row"
	if err := sameDtype(name, "the table", table, "the input", x); err != nil {
		return nil, err
	}
	if xs, ts := x.Shape(), table.Shape(); len(xs) < 1 || len(ts) != 2 || ts[1] != xs[len(xs)-1] || ts[0] < 1 {
		return nil, fmt.Errorf("%s: the input must have shape (…, D) and the table (M, D), got %v and %v", name, xs, ts)
	}
	return byDtype(x, addRows[float32], addRows[float64])(e, x, table, 1)
}

// addRows adds the first rows of a table to x, again and again.
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

// AddConstantRows is like AddRows for a constant table of T rows. If two tables have the same shape, they need
// different labels.
func AddConstantRows(e *Env, x *G.Node, table []float64, label string) (*G.Node, error) {
	const name = "add constant rows"
	if err := CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) != 2 && len(s) != 3 || len(table) != s[len(s)-2]*s[len(s)-1] {
		return nil, fmt.Errorf("%s: the input must have shape (T, D) or (B, T, D) and the table T·D elements, got %v and %d elements", name, s, len(table))
	}
	return byDtype(x, addConstantRows[float32], addConstantRows[float64])(e, x, table, label)
}

func addConstantRows[F kernel.Float](e *Env, x *G.Node, table []float64, label string) (*G.Node, error) {
	rows := make([]F, len(table))
	for i, v := range table {
		rows[i] = F(v)
	}
	o := newOp(fmt.Sprintf("add constant rows%v(%s)", x.Shape(), label), x.Shape(), func(out []F, values []G.Value) {
		x := elements[F](values[0], len(out))
		copy(out, x)
		kernel.AddRow(e.Cores, out, rows)
	})
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) { return G.Nodes{g}, nil }
	return e.apply(o, x)
}
