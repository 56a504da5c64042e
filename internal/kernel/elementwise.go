package kernel

// Add sets out to x + y.
func Add[F Float](out, x, y []F) {
	spread[F](addPart[F]{}, len(out), &vectorWork[F]{n: len(out), step: grain, out: out, x: x, y: y})
}

type addPart[F Float] struct{}

func (addPart[F]) do(w *vectorWork[F], lo, hi int) {
	w.body.add(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi])
}

// AddRow adds row to every row of m, which has len(m)/len(row) of them.
func AddRow[F Float](m, row []F) {
	width := len(row)
	spread[F](addRowPart[F]{}, len(m), &vectorWork[F]{n: len(m) / width, step: rowsPerTask(width, 1), out: m, x: row, width: width})
}

type addRowPart[F Float] struct{}

func (addRowPart[F]) do(w *vectorWork[F], lo, hi int) {
	w.body.addRow(w.out[lo*w.width:hi*w.width], w.x, hi-lo)
}

// SumRows sets sum to the sum of the rows of m, each of len(sum) elements.
func SumRows[F Float](sum, m []F) {
	// A task takes columns, as many whole cache lines of them as make it worth while.
	width := len(sum)
	rows := len(m) / width
	step := (rowsPerTask(rows, 1) + 127) / 128 * 128
	spread[F](sumRowsPart[F]{}, len(m), &vectorWork[F]{n: width, step: step, out: sum, x: m[:rows*width], width: width})
}

type sumRowsPart[F Float] struct{}

func (sumRowsPart[F]) do(w *vectorWork[F], lo, hi int) {
	if len(w.x) == 0 {
		clear(w.out[lo:hi])
		return
	}
	w.body.sumRows(w.out[lo:hi], w.x[lo:], len(w.x)/w.width, w.width)
}

// SkipMul sets out to x·y, where zero in y gives zero whatever x is.
func SkipMul[F Float](out, x, y []F) {
	spread[F](skipMulPart[F]{}, len(out), &vectorWork[F]{n: len(out), step: grain, out: out, x: x, y: y})
}

type skipMulPart[F Float] struct{}

func (skipMulPart[F]) do(w *vectorWork[F], lo, hi int) {
	w.body.skipMul(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi])
}

// SwapAxes copies src, read as (n, a, b, width), to dst as (n, b, a, width).
func SwapAxes[F Float](dst, src []F, n, a, b, width int) {
	size := a * b * width
	if size == 0 {
		return
	}
	spread[F](swapPart[F]{}, n*size, &vectorWork[F]{n: n, step: rowsPerTask(size, 1), out: dst, x: src, width: width, axes: [2]int{a, b}})
}

type swapPart[F Float] struct{}

func (swapPart[F]) do(w *vectorWork[F], lo, hi int) {
	a, b, width := w.axes[0], w.axes[1], w.width
	size := a * b * width
	for i := lo; i < hi; i++ {
		s, d := w.x[i*size:][:size], w.out[i*size:][:size]
		if a > b { // the longer axis goes to the inner loop
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
