package kernel

// Repeat sets y to x with every block of size elements repeated so many times in a row.
func Repeat[F Float](y, x []F, size, times int) {
	divide(len(x)/size, max(1, grain/(size*times)), len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range times {
				copy(y[(i*times+j)*size:], x[i*size:][:size])
			}
		}
	})
}

// SumRepeats is the gradient of Repeat: it sets x to the sum, in order, of the blocks of y that Repeat makes of its own.
func SumRepeats[F Float](x, y []F, size, times int) {
	divide(len(x)/size, max(1, grain/(size*times)), len(y), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := x[i*size:][:size]
			copy(sum, y[i*times*size:])
			for j := 1; j < times; j++ {
				axpy(sum, 1, y[(i*times+j)*size:][:size])
			}
		}
	})
}
