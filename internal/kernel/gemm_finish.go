package kernel

import "sync/atomic"

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
