package portable

// AddRow adds row to each row of m.
func AddRow[F Float](m, row []F, rows int) {
	for r := range rows {
		Axpy(m[r*len(row):], row, 1)
	}
}

// SumRows sets sum to the sum of the rows of m, which are stride elements apart.
func SumRows[F Float](sum, m []F, rows, stride int) {
	clear(sum)
	for r := range rows {
		Axpy(sum, m[r*stride:][:len(sum)], 1)
	}
}

// CopyRows copies rows of width elements. Strides are distances between rows.
func CopyRows[F Float](dst, src []F, rows, width, dstStride, srcStride int) {
	for r := range rows {
		copy(dst[r*dstStride:][:width], src[r*srcStride:][:width])
	}
}
