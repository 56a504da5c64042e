package kernel

import "math"

// vectorPortable is the body that runs everywhere.
func vectorPortable[F Float]() *vectorBody[F] {
	return &vectorBody[F]{
		name: "portable",
		add:  addPortable[F], mul: mulPortable[F], skipMul: skipMulPortable[F],
		relu: reluPortable[F], reluGrad: reluGradPortable[F],
		gelu: geluPortable[F], geluGrad: geluGradPortable[F],
		geluTanh: geluTanhPortable[F], geluTanhGrad: geluTanhGradPortable[F],
		silu: siluPortable[F], siluGrad: siluGradPortable[F],
		softcap: softcapPortable[F], softcapGrad: softcapGradPortable[F], scoreGrad: scoreGradPortable[F],
		addSlope: addSlopePortable[F], addBias: addBiasPortable[F], forbid: forbidPortable[F],
		rotate: rotatePortable[F], rotatePairs: rotatePairsPortable[F],
		scale: scalePortable[F], axpy: axpyPortable[F],
		adamW: adamWPortable[F], dropout: dropoutPortable[F],
		maxOf: maxPortable[F], dot: dotPortable[F], hasNaN: hasNaNPortable[F], sumSquares: sumSquaresPortable[F],
		expShift: expShiftPortable[F], expSum: expSumPortable[F],
		addRow: addRowPortable[F], sumRows: sumRowsPortable[F], copyRows: copyRowsPortable[F],
		softmax: softmaxPortable[F], softmaxGrad: softmaxGradPortable[F],
		layerNorm: layerNormPortable[F], layerNormGrad: layerNormGradPortable[F],
		rmsNorm: rmsNormPortable[F], rmsNormGrad: rmsNormGradPortable[F],
	}
}

func addPortable[F Float](out, x, y []F) {
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = x[i] + y[i]
	}
}

func mulPortable[F Float](out, x, y []F) {
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = x[i] * y[i]
	}
}

func skipMulPortable[F Float](out, x, y []F) {
	x, y = x[:len(out)], y[:len(out)]
	for i := range out {
		if y[i] == 0 {
			out[i] = 0
		} else {
			out[i] = x[i] * y[i]
		}
	}
}

func reluPortable[F Float](y, x []F) {
	x = x[:len(y)]
	for i, v := range x {
		if v > 0 || v != v {
			y[i] = v
		} else {
			y[i] = 0
		}
	}
}

func reluGradPortable[F Float](dx, x, g []F) {
	x, g = x[:len(dx)], g[:len(dx)]
	for i, v := range x {
		if v > 0 {
			dx[i] = g[i]
		} else {
			dx[i] = 0
		}
	}
}

func scalePortable[F Float](x []F, a F) {
	for i := range x {
		x[i] *= a
	}
}

func axpyPortable[F Float](y, x []F, a F) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += a * v
	}
}

// maxPortable returns the largest element of x: −Inf if there is none, NaN if any element is NaN.
func maxPortable[F Float](x []F) F {
	most := F(math.Inf(-1))
	for _, v := range x {
		if v > most {
			most = v
		}
		if v != v {
			return v
		}
	}
	return most
}

// dotPortable keeps four sums, so that an addition needn't wait for the last one.
func dotPortable[F Float](x, y []F) F {
	var s0, s1, s2, s3 F
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s2) + (s1 + s3)
}

func hasNaNPortable[F Float](x []F) bool {
	for _, v := range x {
		if v != v {
			return true
		}
	}
	return false
}

func sumSquaresPortable[F Float](x []F) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// expShiftPortable sets dst[i] to exp(src[i] − shift) and returns the sum of dst. A difference of −Inf gives exactly 0,
// +Inf gives +Inf, NaN gives NaN. dst may be src.
//
// Where the difference is exact, the exponential is right to within 1.5 ulp in float32 and in float64, results below
// the smallest normal number included.
func expShiftPortable[F Float](dst, src []F, shift F) F {
	dst = dst[:len(src)]
	var sum F
	for i, v := range src {
		e := expOf(v - shift)
		dst[i] = e
		sum += e
	}
	return sum
}

func expSumPortable[F Float](src []F, shift F) F {
	var sum F
	for _, v := range src {
		sum += expOf(v - shift)
	}
	return sum
}

// scoreGradPortable turns the gradients g of weights p, less being Σ p·g of the row, into those of the scores. Both are 0
// where a weight is 0, whatever the gradient is, and where it is below tiny, unless the gradient isn't finite.
func scoreGradPortable[F Float](g, p []F, less, tiny F) {
	p = p[:len(g)]
	for i, w := range p {
		if d := g[i] - less; w == 0 || w < tiny && finite(d) {
			p[i], g[i] = 0, 0
		} else {
			g[i] = w * d
		}
	}
}

// addRowPortable adds row to each of so many rows of m.
func addRowPortable[F Float](m, row []F, rows int) {
	for r := range rows {
		axpyPortable(m[r*len(row):], row, 1)
	}
}

// sumRowsPortable sets sum to the sum of so many rows of m, stride elements apart.
func sumRowsPortable[F Float](sum, m []F, rows, stride int) {
	clear(sum)
	for r := range rows {
		axpyPortable(sum, m[r*stride:][:len(sum)], 1)
	}
}

// copyRowsPortable copies so many rows of a width, which lie dstStride and srcStride elements apart.
func copyRowsPortable[F Float](dst, src []F, rows, width, dstStride, srcStride int) {
	for r := range rows {
		copy(dst[r*dstStride:][:width], src[r*srcStride:][:width])
	}
}
