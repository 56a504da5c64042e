package kernel

import (
	"fmt"
	"sync/atomic"
)

// gemmProduct holds the arguments of GemmBatch.
type gemmProduct[F Float] struct {
	count, m, n, k            int
	transA, transB            bool
	alpha, beta               F
	a, b, c                   []F
	lda, ldb, ldc             int
	strideA, strideB, strideC int
	finish                    *Finish[F] // nil means nothing
	weight                    *Kept      // the packed form of B; nil for none
}

// hasTerms reports whether C has elements that are sums of products. If it has none, hasTerms computes and finishes C.
// It panics if the sizes don't fit the operands.
func (p *gemmProduct[F]) hasTerms() bool {
	if p.count < 0 || p.m < 0 || p.n < 0 || p.k < 0 {
		panic(fmt.Sprintf("kernel: negative dimension in product of %d (%d, %d) x (%d, %d)", p.count, p.m, p.k, p.k, p.n))
	}
	if p.count == 0 || p.m == 0 || p.n == 0 {
		return false
	}
	if p.count > 1 && p.strideC < 1 {
		panic(fmt.Sprintf("kernel: %d products need a positive stride of C, got %d", p.count, p.strideC))
	}
	gemmCheck("C", p.count, p.m, p.n, len(p.c), p.ldc, p.strideC)
	if p.k == 0 || p.alpha == 0 {
		body := bodyOf[F]()
		for i := range p.count {
			for r := range p.m {
				if row := p.c[i*p.strideC+r*p.ldc:][:p.n]; p.beta == 0 {
					clear(row)
				} else {
					body.scale(row, p.beta)
				}
			}
			p.finishBlock(body, i, 0, p.m, 0, p.n)
		}
		return false
	}
	if p.transA {
		gemmCheck("A", p.count, p.k, p.m, len(p.a), p.lda, p.strideA)
	} else {
		gemmCheck("A", p.count, p.m, p.k, len(p.a), p.lda, p.strideA)
	}
	if p.transB {
		gemmCheck("B", p.count, p.n, p.k, len(p.b), p.ldb, p.strideB)
	} else {
		gemmCheck("B", p.count, p.k, p.n, len(p.b), p.ldb, p.strideB)
	}
	return true
}

// gemmCheck panics unless count stored matrices of rows×cols fit in length elements.
func gemmCheck(name string, count, rows, cols, length, ld, stride int) {
	if ld < cols || stride < 0 {
		panic(fmt.Sprintf("kernel: %s has rows of %d elements: the row stride must be at least that and the matrix stride at least 0, got %d and %d", name, cols, ld, stride))
	}
	if need := (count-1)*stride + (rows-1)*ld + cols; length < need {
		panic(fmt.Sprintf("kernel: %s needs %d elements, got %d", name, need, length))
	}
}

// A Finish is what becomes of the elements of a product when their last term has been added. It is done block by block,
// while the elements are in the processor's cache.
type Finish[F Float] struct {
	Plus       []F                       // is added to C; it has C's shape (m, n), without gaps. nil means nothing
	Bias       []F                       // is added to each row of C; n elements, or nil
	Activation func(cores int, y, x []F) // if it isn't nil, Y is set to its results for C
	Y          []F                       // has C's shape (m, n), without gaps, and may be C

	seeks bool        // whether to search C for NaN
	nan   atomic.Bool // whether C has NaN
}

// finishBlock finishes rows i0 to i1 and columns j0 to j1 of product item. The body computes an element in the same way
// wherever it lies, so blocks may have any size.
func (p *gemmProduct[F]) finishBlock(body *body[F], item, i0, i1, j0, j1 int) {
	f := p.finish
	if f == nil {
		return
	}
	rows, width := 1, j1-j0
	if width == p.ldc { // the rows are adjacent
		rows = i1 - i0
	}
	for i := i0; i < i1; i += rows {
		c, from := p.c[item*p.strideC+i*p.ldc+j0:][:rows*width], i*p.n+j0
		if f.Plus != nil {
			body.add(c, c, f.Plus[from:][:len(c)])
		}
		if f.Bias != nil {
			body.addRow(c, f.Bias[j0:j1], rows)
		}
		if f.Activation != nil {
			f.Activation(1, f.Y[from:][:len(c)], c)
		}
		if f.seeks && body.hasNaN(c) {
			f.nan.Store(true)
		}
	}
}
