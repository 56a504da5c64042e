package kernel

// MeanRows sets row i of out to the mean of the first counts[i] rows of matrix i of x, each of rows rows of width
// elements. The rows after them are not read. A count of 0 gives a row of zeros.
func MeanRows[F Float](out, x []F, counts []int, rows, width int) {
	for i, n := range counts {
		out, x := out[i*width:][:width], x[i*rows*width:]
		SumRows(out, x[:n*width])
		for j := range out {
			out[j] /= F(max(n, 1))
		}
	}
}

// MeanRowsGrad sets dx to the gradient of MeanRows where g is that of out. The rows that weren't read get zero.
func MeanRowsGrad[F Float](dx, g []F, counts []int, rows, width int) {
	clear(dx)
	for i, n := range counts {
		g := g[i*width:][:width]
		for r := range n {
			dx := dx[(i*rows+r)*width:][:width]
			for j, v := range g {
				dx[j] = v / F(n)
			}
		}
	}
}
