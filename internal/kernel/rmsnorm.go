package kernel

import "math"

// rmsRows is how many rows of a width one task of RMSNorm takes; it fixes the order in which the gradient of gamma is
// summed.
func rmsRows(width int) int { return max(16, 8192/width) }

// RMSNorm divides each row of x, of len(gamma) elements, by its root mean square, √(mean(x²) + eps), and multiplies it by
// gamma.
func RMSNorm[F Float](y, x, gamma []F, eps float64) {
	w := len(gamma)
	divide(len(x)/w, rmsRows(w), 2*len(x), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			x, y := x[r*w:][:w], y[r*w:][:w]
			inv := invRMS(x, eps)
			for i, v := range x {
				y[i] = v * inv * gamma[i]
			}
		}
	})
}

// invRMS is 1/√(mean(x²) + eps).
func invRMS[F Float](x []F, eps float64) F {
	return F(1 / math.Sqrt(float64(dotOf(x, x))/float64(len(x))+eps))
}

// RMSNormWork is how many elements of scratch RMSNormGrad needs for n rows.
func RMSNormWork(n, width int) int {
	rows := rmsRows(width)
	return width * ((n + rows - 1) / rows)
}

// RMSNormGrad sets dx and dgamma to the gradients of RMSNorm where g is that of y. A row whose g is all zero adds nothing,
// whatever x holds there.
func RMSNormGrad[F Float](dx, dgamma, x, gamma, g []F, eps float64, work []F) {
	w := len(gamma)
	n, rows := len(x)/w, rmsRows(w)
	divide(n, rows, 4*len(x), func(lo, hi int) {
		sum := work[lo/rows*w:][:w] // of dgamma over this task's rows
		clear(sum)
		for r := lo; r < hi; r++ {
			rmsNormGradRow(dx[r*w:][:w], sum, x[r*w:][:w], gamma, g[r*w:][:w], eps)
		}
	})
	clear(dgamma)
	for at := 0; at < RMSNormWork(n, w); at += w {
		for i, v := range work[at:][:w] {
			dgamma[i] += v
		}
	}
}

// rmsNormGradRow sets dx for one row and adds the row's part to dgamma. With d = g·gamma and r = 1/√(mean(x²) + eps):
// dx = (d − x·r²·mean(d·x))·r.
func rmsNormGradRow[F Float](dx, dgamma, x, gamma, g []F, eps float64) {
	zero := true
	for _, v := range g {
		if v != 0 {
			zero = false
			break
		}
	}
	if zero {
		clear(dx)
		return
	}
	r := invRMS(x, eps)
	dx, dgamma, gamma, g = dx[:len(x)], dgamma[:len(x)], gamma[:len(x)], g[:len(x)]
	for i, v := range x {
		dx[i] = g[i] * gamma[i]
		dgamma[i] += g[i] * (v * r)
	}
	mean := r * (r * (dotOf(dx, x) / F(len(x))))
	for i, v := range x {
		dx[i] = (dx[i] - v*mean) * r
	}
}
