package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// JoinHeads puts the vectors of y after those of x in each head: (…, H·A) and (…, H·B) give (…, H·(A+B)). If y has
// shape (…, B), all heads get the same vector. Latent attention has such keys (DeepSeek-V2, 2024).
func JoinHeads(e *Env, x, y *G.Node, heads, width int) (*G.Node, error) {
	const name = "join heads"
	if err := sameDtype(name, "the second part", y, "the first part", x); err != nil {
		return nil, err
	}
	xs, ys := x.Shape(), y.Shape()
	r := len(xs)
	if r < 1 || len(ys) != r || !slices.Equal(xs[:r-1], ys[:r-1]) || heads < 1 || xs[r-1]%heads != 0 || ys[r-1] != width && ys[r-1] != heads*width {
		return nil, fmt.Errorf("%s: the parts must have shapes (…, H·A) and (…, H·B) or (…, B), with H = %d and B = %d, got %v and %v", name, heads, width, xs, ys)
	}
	return ByDtype(x, joinHeads[float32], joinHeads[float64])(e, x, y, heads, width)
}

func joinHeads[F kernel.Float](e *Env, x, y *G.Node, heads, second int) (*G.Node, error) {
	xs, ys := x.Shape(), y.Shape()
	n, first := volume(xs[:len(xs)-1]), xs[len(xs)-1]/heads
	shape := xs.Clone()
	shape[len(shape)-1] = heads * (first + second)
	each := ys[len(ys)-1] != second || heads == 1 // each head has its own vector
	place := func(token, head int) int {          // the place of a head's vector in y
		if each {
			token = token*heads + head
		}
		return token * second
	}
	attrs := fmt.Sprintf("%v%v(%d)", xs, ys, heads)
	o := newOp("join heads"+attrs, shape, func(out []F, values []G.Value) {
		x, y := read2[F](values, xs.TotalSize(), ys.TotalSize())
		for i := range n * heads {
			copy(out[i*(first+second):], x[i*first:][:first])
			copy(out[i*(first+second)+first:], y[place(i/heads, i%heads):][:second])
		}
	})
	o.wrt, o.grad = 2, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return joint(e, "join heads.grad"+attrs, o.DiffWRT(2), []tensor.Shape{xs, ys}, []*G.Node{g}, nil, nil, func(grads [][]F, values []G.Value) {
			g := elements[F](values[0], shape.TotalSize())
			if !each {
				clear(grads[1])
			}
			for i := range n * heads {
				copy(grads[0][i*first:][:first], g[i*(first+second):])
				dy, from := grads[1][place(i/heads, i%heads):][:second], g[i*(first+second)+first:][:second]
				if each {
					copy(dy, from)
					continue
				}
				for j, v := range from {
					dy[j] += v
				}
			}
		})
	}
	return e.apply(o, x, y)
}

// HeadProducts multiplies each head's vectors by the head's matrix: x has shape (…, H·A), and w holds H matrices of
// shape (A, C), one below the other, or of shape (C, A) if transposed is true. The result has shape (…, H·C), and no
// gradient.
func HeadProducts(e *Env, x, w *G.Node, heads int, transposed bool) (*G.Node, error) {
	const name = "products of heads"
	if err := sameDtype(name, "the matrices", w, "the input", x); err != nil {
		return nil, err
	}
	xs, ws := x.Shape(), w.Shape()
	if len(xs) < 1 || len(ws) != 2 || heads < 1 || xs[len(xs)-1]%heads != 0 || ws[0]%heads != 0 {
		return nil, fmt.Errorf("%s: the input must have shape (…, H·A), and the matrices (H·A, C) or (H·C, A), with H = %d, got %v and %v", name, heads, xs, ws)
	}
	inner, n := flip(transposed, ws[0]/heads, ws[1])
	if xs[len(xs)-1] != heads*inner {
		return nil, fmt.Errorf("%s: the input's heads must have width %d, like the matrices, got %d", name, inner, xs[len(xs)-1]/heads)
	}
	return ByDtype(x, headProducts[float32], headProducts[float64])(e, x, w, heads, inner, n, transposed)
}

func headProducts[F kernel.Float](e *Env, x, w *G.Node, heads, inner, n int, transposed bool) (*G.Node, error) {
	shape, ws := x.Shape().Clone(), w.Shape()
	shape[len(shape)-1] = heads * n
	o := newOp(fmt.Sprintf("products of heads%v%v(%d,%t)", x.Shape(), ws, heads, transposed), shape, func(out []F, values []G.Value) {
		rows := len(out) / (heads * n)
		x, w := read2[F](values, rows*heads*inner, ws.TotalSize())
		kernel.GemmBatch(e.Cores, heads, false, transposed, rows, n, inner, 1, x, heads*inner, inner, w, ws[1], inner*n, 0, out, heads*n, n)
	})
	return e.apply(o, x, w)
}
