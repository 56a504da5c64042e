package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// Embedding looks up rows of a table of shape (V, D) by int ids. Ids of shape (…) give a result of shape (…, D). If an
// id occurs more than once, its gradients add up. An id outside [0, V) is an error when the graph runs.
func Embedding(e *Env, table, ids *G.Node) (*G.Node, error) {
	const name = "embedding"
	if err := CheckFloat(name, "the table", table); err != nil {
		return nil, err
	}
	if table.Dims() != 2 || ids.Dims() < 1 || ids.Dtype() != tensor.Int {
		return nil, fmt.Errorf("%s: the table must have shape (V, D), and the ids must be int of rank 1 or more, got %v, and ids of shape %v and dtype %v", name, table.Shape(), ids.Shape(), ids.Dtype())
	}
	return ByDtype(table, embedding[float32], embedding[float64])(e, table, ids)
}

func embedding[F kernel.Float](e *Env, table, ids *G.Node) (*G.Node, error) {
	vocab, width := table.Shape()[0], table.Shape()[1]
	n := ids.Shape().TotalSize()
	shape := append(ids.Shape(), width)

	o := newOp(fmt.Sprintf("embedding%v%v", table.Shape(), shape), shape, func(out []F, values []G.Value) {
		table := elements[F](values[0], vocab*width)
		ids := elements[int](values[1], n)
		checkIDs(ids, vocab)
		kernel.Gather(out, table, ids, width)
	})
	o.wrt, o.lookup, o.grad = 1, true, func(inputs G.Nodes, out, g *G.Node) (G.Nodes, error) {
		name := fmt.Sprintf("embedding.dtable%v%v", table.Shape(), shape)
		add := func(dt []F, values []G.Value) {
			g := elements[F](values[0], n*width)
			kernel.ScatterAdd(dt, g, elements[int](values[1], n), width)
		}
		if t := e.ties[table]; t != nil && t.grad != nil {
			grad := t.grad
			buf := grad.Op().(*op).shared.(*buffer[F])
			t.grad = nil
			return one(e.apply(&op{
				name: name + " added to a head's", shape: buf.shape, out: typeOf(dtypeOf[F](), buf.shape), output: &buf.lease, after: 1,
				run: func(values []G.Value) G.Value {
					add(buf.data, values)
					return buf.dense
				},
			}, g, inputs[1], grad, out))
		}
		dt := newOp(name, table.Shape(), func(dt []F, values []G.Value) {
			clear(dt)
			add(dt, values)
		})
		dt.after = 1
		// The output is among the inputs, so that it runs first: it checks the ids.
		return one(e.apply(dt, g, inputs[1], out))
	}
	return e.apply(o, table, ids)
}

// checkIDs fails if an id isn't in a vocabulary.
func checkIDs(ids []int, vocab int) {
	for i, id := range ids {
		if id < 0 || id >= vocab {
			fail("id %d at position %d isn't in the vocabulary of %d (0 to %d)", id, i, vocab, vocab-1)
		}
	}
}
