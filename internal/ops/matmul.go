package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// MatMul multiplies matrices: it returns scale·op(a)·op(b). op(a) has shape (…, M, K) and op(b) has shape (…, K, N).
// Their leading axes must be equal. If transA is true, op(a) is a with its last two axes swapped, otherwise a itself;
// transB does the same for b.
//
// If skip is true, zero times any number is zero, even zero times NaN or infinity. Set skip for a product that sums
// over positions and whose left operand holds exact zeros, such as the attention weights of masked keys.
func MatMul(e *Env, a, b *G.Node, transA, transB bool, scale float64, skip bool) (*G.Node, error) {
	const name = "matmul"
	if err := sameDtype(name, "the right operand", b, "the left operand", a); err != nil {
		return nil, err
	}
	bad := func() error {
		return fmt.Errorf("%s: can't multiply shapes %v and %v (transposed: %t, %t)", name, a.Shape(), b.Shape(), transA, transB)
	}
	r := a.Dims()
	if r < 2 || b.Dims() != r || !slices.Equal(a.Shape()[:r-2], b.Shape()[:r-2]) {
		return nil, bad()
	}
	p := product{transA: transA, transB: transB, scale: scale, skip: skip, count: volume(a.Shape()[:r-2])}
	as, bs := a.Shape()[r-2:], b.Shape()[r-2:]
	p.m, p.k = flip(transA, as[0], as[1])
	k, n := flip(transB, bs[0], bs[1])
	if p.n = n; k != p.k {
		return nil, bad()
	}
	return ByDtype(a, matMul[float32], matMul[float64])(e, a, b, p)
}

func flip(swap bool, x, y int) (int, int) {
	if swap {
		return y, x
	}
	return x, y
}

// product describes a batch: the number of products (count) and their sizes, (m, k) x (k, n).
type product struct {
	count, m, n, k int
	transA, transB bool
	scale          float64
	skip           bool
}

func matMul[F kernel.Float](e *Env, a, b *G.Node, p product) (*G.Node, error) {
	lead := a.Shape()[:a.Dims()-2]
	shape := append(lead.Clone(), p.m, p.n)
	_, lda := flip(p.transA, p.m, p.k)
	_, ldb := flip(p.transB, p.k, p.n)
	o := newOp(fmt.Sprintf("matmul%v(%t,%t,%v,%t)", shape, p.transA, p.transB, p.scale, p.skip), shape, func(c []F, values []G.Value) {
		a, b := read2[F](values, p.count*p.m*p.k, p.count*p.k*p.n)
		if p.skip {
			kernel.SkipGemmBatch(e.Cores, p.count, p.transA, p.transB, p.m, p.n, p.k, F(p.scale), a, lda, p.m*p.k, b, ldb, p.k*p.n, c, p.n, p.m*p.n)
		} else {
			kernel.GemmBatch(e.Cores, p.count, p.transA, p.transB, p.m, p.n, p.k, F(p.scale), a, lda, p.m*p.k, b, ldb, p.k*p.n, 0, c, p.n, p.m*p.n)
		}
	})
	o.wrt, o.grad = 2, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		// C = A·B: dA = G·Bᵀ, dB = Aᵀ·G, each transposed like its operand. The gradients always skip zeros, because the
		// gradients of masked positions are exact zeros.
		var da, db *G.Node
		var err error
		switch {
		case !e.wants(inputs[0]):
		case p.transA:
			da, err = MatMul(e, inputs[1], g, p.transB, true, p.scale, true) // (k, n) x (n, m) -> (k, m)
		default:
			da, err = MatMul(e, g, inputs[1], false, !p.transB, p.scale, true) // (m, n) x (n, k) -> (m, k)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case !e.wants(inputs[1]):
		case p.transB:
			db, err = MatMul(e, g, inputs[0], true, p.transA, p.scale, true) // (n, m) x (m, k) -> (n, k)
		default:
			db, err = MatMul(e, inputs[0], g, !p.transA, false, p.scale, true) // (k, m) x (m, n) -> (k, n)
		}
		return G.Nodes{da, db}, err
	}
	return e.apply(o, a, b)
}
