package portable

import "math"

// LayerNorm normalises rows of x, of len(gamma) = width elements, multiplies by gamma and adds beta, which may be nil.
func LayerNorm[F Float](y, x, gamma, beta []F, width, eps F, rows int) {
	n := len(gamma)
	for r := range rows {
		x, y := x[r*n:][:n], y[r*n:][:n]
		mean, inv := moments(x, eps)
		for i, v := range x {
			y[i] = (v - mean) * inv * gamma[i]
		}
		for i, b := range beta {
			y[i] += b
		}
	}
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

// LayerNormGrad sets dx and adds to dgamma and dbeta for rows of len(gamma) = width elements.
func LayerNormGrad[F Float](dx, dgamma, dbeta, x, gamma, g []F, width, eps F, rows int) {
	n := len(gamma)
	for r := range rows {
		layerNormGradRow(dx[r*n:][:n], dgamma, dbeta, x[r*n:][:n], gamma, g[r*n:][:n], eps)
	}
}

// layerNormGradRow sets dx for one row and adds the row's part to dgamma and dbeta. If x̂ is the normalised row and d =
// g·gamma, then dx = (d − mean(d) − x̂·mean(d·x̂))/σ.
func layerNormGradRow[F Float](dx, dgamma, dbeta, x, gamma, g []F, eps F) {
	if AllZero(g) {
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

// RmsNorm divides rows of x, of len(gamma) = width elements, by their root mean square, and multiplies by gamma.
func RmsNorm[F Float](y, x, gamma []F, width F, eps float64, rows int) {
	n := len(gamma)
	for r := range rows {
		x, y := x[r*n:][:n], y[r*n:][:n]
		inv := invRMS(x, width, eps)
		for i, v := range x {
			y[i] = v * inv * gamma[i]
		}
	}
}

// invRMS returns 1/√(mean(x²) + eps). eps is a float64, because it may be too small for float32.
func invRMS[F Float](x []F, width F, eps float64) F {
	return F(1 / math.Sqrt(float64(Dot(x, x)/width)+eps))
}

// RmsNormGrad sets dx and adds to dgamma for rows of len(gamma) = width elements.
func RmsNormGrad[F Float](dx, dgamma, x, gamma, g []F, width F, eps float64, rows int) {
	n := len(gamma)
	for r := range rows {
		rmsNormGradRow(dx[r*n:][:n], dgamma, x[r*n:][:n], gamma, g[r*n:][:n], width, eps)
	}
}

// rmsNormGradRow sets dx for one row and adds the row's part to dgamma. If d = g·gamma and r = 1/√(mean(x²) + eps),
// then dx = (d − x·r²·mean(d·x))·r.
func rmsNormGradRow[F Float](dx, dgamma, x, gamma, g []F, width F, eps float64) {
	if AllZero(g) {
		clear(dx)
		return
	}
	r := invRMS(x, width, eps)
	dx, dgamma, gamma, g = dx[:len(x)], dgamma[:len(x)], gamma[:len(x)], g[:len(x)]
	for i, v := range x {
		dx[i] = g[i] * gamma[i]
		dgamma[i] += g[i] * (v * r)
	}
	mean := r * (r * (Dot(dx, x) / width))
	for i, v := range x {
		dx[i] = (dx[i] - v*mean) * r
	}
}
