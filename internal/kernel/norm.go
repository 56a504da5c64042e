package kernel

import "math"

// normRows is how many rows of a normalisation one task takes; it fixes the order in which the gradients of gamma and
// beta are summed.
const normRows = 64

// LayerNorm normalises each row of x, of len(gamma) elements, to mean 0 and variance 1, multiplies it by gamma and adds
// beta, if that isn't nil.
func LayerNorm[F Float](y, x, gamma, beta []F, eps F) {
	w := len(gamma)
	split(len(x)/w, normRows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			x, y := x[r*w:][:w], y[r*w:][:w]
			mean, inv := moments(x, eps)
			for i, v := range x {
				y[i] = (v - mean) * inv * gamma[i]
			}
			for i, b := range beta {
				y[i] += b
			}
		}
	})
}

// moments returns the mean of a row and 1/√(variance + eps).
func moments[F Float](x []F, eps F) (mean, inv F) {
	var sum F
	for _, v := range x {
		sum += v
	}
	mean = sum / F(len(x))
	var sq F
	for _, v := range x {
		sq += (v - mean) * (v - mean)
	}
	return mean, F(1 / math.Sqrt(float64(sq/F(len(x))+eps)))
}

// LayerNormWork is how many elements of scratch LayerNormGrad needs for n rows.
func LayerNormWork(n, width int) int { return 2 * width * ((n + normRows - 1) / normRows) }

// LayerNormGrad sets dx, dgamma and, if it isn't nil, dbeta to the gradients of LayerNorm where g is that of y. A row
// whose g is all zero adds nothing, whatever x holds there.
func LayerNormGrad[F Float](dx, dgamma, dbeta, x, gamma, g []F, eps F, work []F) {
	w := len(gamma)
	n := len(x) / w
	split(n, normRows, func(lo, hi int) {
		sums := work[lo/normRows*2*w:][:2*w] // of dgamma and dbeta over this task's rows
		clear(sums)
		for r := lo; r < hi; r++ {
			layerNormGradRow(dx[r*w:][:w], sums[:w], sums[w:], x[r*w:][:w], gamma, g[r*w:][:w], eps)
		}
	})
	clear(dgamma)
	clear(dbeta)
	for at := 0; at < LayerNormWork(n, w); at += 2 * w {
		for i, v := range work[at:][:w] {
			dgamma[i] += v
		}
		if dbeta != nil {
			for i, v := range work[at+w:][:w] {
				dbeta[i] += v
			}
		}
	}
}

// layerNormGradRow sets dx for one row and adds the row's part to dgamma and dbeta. With x̂ the normalised row and
// d = g·gamma: dx = (d − mean(d) − x̂·mean(d·x̂))/σ.
func layerNormGradRow[F Float](dx, dgamma, dbeta, x, gamma, g []F, eps F) {
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
	mean, inv := moments(x, eps)
	var sum, dot F
	for i, v := range g {
		xhat := (x[i] - mean) * inv
		d := v * gamma[i]
		sum += d
		dot += d * xhat
		dgamma[i] += v * xhat
		dbeta[i] += v
	}
	sum /= F(len(x))
	dot /= F(len(x))
	for i, v := range g {
		xhat := (x[i] - mean) * inv
		dx[i] = (v*gamma[i] - sum - xhat*dot) * inv
	}
}
