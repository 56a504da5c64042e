package kernel

// AddRow adds row to each of the len(m)/len(row) rows of m.
func AddRow[F Float](cores int, m, row []F) {
	width := len(row)
	runLoop[F](cores, addRowLoop[F]{}, len(m), &loopWork[F]{n: len(m) / width, step: rowsPerTask(width, 1), out: m, x: row, width: width})
}

type addRowLoop[F Float] struct{}

func (addRowLoop[F]) run(w *loopWork[F], lo, hi int) {
	w.body.addRow(w.out[lo*w.width:hi*w.width], w.x, hi-lo)
}

// sumBlock is the number of rows that are added up in order. The sums of such blocks are added up in a binary tree. If
// all rows were added up in order, rounding errors would grow with their number.
const sumBlock = 16

// SumRows sets sum to the sum of the rows of m, each of len(sum) elements.
func SumRows[F Float](cores int, sum, m []F) {
	width := len(sum)
	n := parts(len(m)/width, sumBlock)
	if n <= 1 {
		sumInOrder(cores, sum, m)
		return
	}
	spare := takeSpare[F](n * width)
	blocks := *spare
	// Block i consists of rows i, i + n, i + 2n and so on. So read each n rows of m as one long row: the sum of the
	// long rows holds the sums of all blocks.
	sumInOrder(cores, blocks, m)
	for body := bodyOf[F](); n > 1; blocks = blocks[:n*width] {
		half := n / 2 * width
		x, y := blocks[:half], blocks[len(blocks)-half:]
		if half > grain {
			Add(cores, x, x, y)
		} else { // the same, without the cost of a loop
			body.add(x, x, y)
		}
		n -= n / 2
	}
	copy(sum, blocks)
	putSpare(spare)
}

// sumInOrder sets sum to the sum of the rows of m, added up in order. The last row may be shorter than the others.
func sumInOrder[F Float](cores int, sum, m []F) {
	// Each task sums some columns: whole cache lines, and enough of them for a task.
	width := len(sum)
	step := roundUp(rowsPerTask(len(m)/width, 1), 128)
	runLoop[F](cores, sumRowsLoop[F]{}, len(m), &loopWork[F]{n: width, step: step, out: sum, x: m, width: width})
}

type sumRowsLoop[F Float] struct{}

func (sumRowsLoop[F]) run(w *loopWork[F], lo, hi int) {
	if len(w.x) == 0 {
		clear(w.out[lo:hi])
		return
	}
	rows := len(w.x) / w.width
	w.body.sumRows(w.out[lo:hi], w.x[lo:], rows, w.width)
	if last := w.x[rows*w.width:]; lo < len(last) {
		hi = min(hi, len(last))
		w.body.add(w.out[lo:hi], w.out[lo:hi], last[lo:hi])
	}
}

// A Span is the rows from First to End−1.
type Span struct{ First, End int }

// MeanRows sets row i of out to the mean of the rows spans[i] of matrix i of x. Each matrix has shape (rows, width).
// Other rows are not read. An empty span gives a row of zeros.
func MeanRows[F Float](cores int, out, x []F, spans []Span, rows, width int) {
	for i, s := range spans {
		out, x := out[i*width:][:width], x[i*rows*width:]
		SumRows(cores, out, x[s.First*width:s.End*width])
		for j := range out {
			out[j] /= F(max(s.End-s.First, 1))
		}
	}
}

// MeanRowsGrad sets dx to the gradient of MeanRows, where g is the gradient of out. The gradient of rows that MeanRows
// doesn't read is zero.
func MeanRowsGrad[F Float](dx, g []F, spans []Span, rows, width int) {
	clear(dx)
	for i, s := range spans {
		g := g[i*width:][:width]
		for r := s.First; r < s.End; r++ {
			dx := dx[(i*rows+r)*width:][:width]
			for j, v := range g {
				dx[j] = v / F(s.End-s.First)
			}
		}
	}
}

// Repeat copies every block of x to y several times in a row. A block has size elements; times is the number of copies.
func Repeat[F Float](cores int, y, x []F, size, times int) {
	runRanges(cores, len(x)/size, max(1, grain/(size*times)), len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range times {
				copy(y[(i*times+j)*size:], x[i*size:][:size])
			}
		}
	})
}

// SumRepeats computes the gradient of Repeat: it sets each block of x to the sum, in order, of its copies in y.
func SumRepeats[F Float](cores int, x, y []F, size, times int) {
	runRanges(cores, len(x)/size, max(1, grain/(size*times)), len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := x[i*size:][:size]
			copy(sum, y[i*times*size:])
			for j := 1; j < times; j++ {
				Axpy(sum, 1, y[(i*times+j)*size:][:size])
			}
		}
	})
}

// Gather copies row ids[i] of a table to row i of out.
func Gather[F Float](out, table []F, ids []int, width int) {
	for i, id := range ids {
		copy(out[i*width:][:width], table[id*width:][:width])
	}
}

// ScatterAdd adds row i of g to row ids[i] of dt.
func ScatterAdd[F Float](dt, g []F, ids []int, width int) {
	body := bodyOf[F]()
	for i, id := range ids {
		body.axpy(dt[id*width:][:width], g[i*width:][:width], 1)
	}
}

// SwapAxes treats src as an array of shape (n, a, b, width) and copies it to dst with the axes a and b swapped.
func SwapAxes[F Float](cores int, dst, src []F, n, a, b, width int) {
	size := a * b * width
	if size == 0 {
		return
	}
	runLoop[F](cores, swapLoop[F]{}, n*size, &loopWork[F]{n: n, step: rowsPerTask(size, 1), out: dst, x: src, width: width, axes: [2]int{a, b}})
}

type swapLoop[F Float] struct{}

func (swapLoop[F]) run(w *loopWork[F], lo, hi int) {
	a, b, width := w.axes[0], w.axes[1], w.width
	size := a * b * width
	for i := lo; i < hi; i++ {
		s, d := w.x[i*size:][:size], w.out[i*size:][:size]
		if a > b { // the inner loop runs over the longer axis
			for k := range b {
				w.body.copyRows(d[k*a*width:], s[k*width:], a, width, width, b*width)
			}
		} else {
			for j := range a {
				w.body.copyRows(d[j*width:], s[j*b*width:], b, width, a*width, width)
			}
		}
	}
}
