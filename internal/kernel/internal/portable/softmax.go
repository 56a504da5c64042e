package portable

import "math"

// Softmax sets w to exp(scores − m)/Σ exp(scores − m) and returns m, the largest score. If m isn't finite,
// Softmax leaves w unchanged.
func Softmax[F Float](w, scores []F) F {
	largest := MaxOf(scores)
	if Finite(largest) {
		Scale(w, 1/ExpShift(w, scores, largest))
	}
	return largest
}

// SoftmaxGrad sets each row of ds, of width elements, to w·(g − Σ w·g), where 0 times NaN or infinity is 0.
func SoftmaxGrad[F Float](ds, w, g []F, width int) {
	for ; len(ds) > 0; ds, w, g = ds[width:], w[width:], g[width:] {
		var dot F
		for j, p := range w[:width] {
			if p != 0 && g[j] != 0 {
				dot += p * g[j]
			}
		}
		for j, p := range w[:width] {
			if d := g[j] - dot; p != 0 && d != 0 {
				ds[j] = p * d
			} else {
				ds[j] = 0
			}
		}
	}
}

// ScoreGrad replaces g, the gradients of the weights p, with the gradients of the scores. The argument less is
// Σ p·g over the row. It sets p and g to 0 if the weight is 0, even if the gradient is NaN, or if the weight is below
// tiny and the gradient is finite.
func ScoreGrad[F Float](g, p []F, less, tiny F) {
	p = p[:len(g)]
	for i, w := range p {
		if d := g[i] - less; w == 0 || w < tiny && Finite(d) {
			p[i], g[i] = 0, 0
		} else {
			g[i] = w * d
		}
	}
}

// AddSlope subtracts slope·|d − i| from element i of x. F must hold all d − i exactly.
func AddSlope[F Float](x []F, slope, d F) {
	for i := range x {
		far := d - F(i)
		if far < 0 {
			far = -far
		}
		x[i] -= slope * far
	}
}

// AddBias adds bias to x, and sets x to −Inf where bias is −Inf, even if x is NaN.
func AddBias[F Float](x, bias []F) {
	inf := F(math.Inf(-1))
	bias = bias[:len(x)]
	for i := range x {
		if b := bias[i]; b == inf {
			x[i] = inf
		} else {
			x[i] += b
		}
	}
}

// Forbid sets x to −Inf where allow is false.
func Forbid[F Float](x []F, allow []bool) {
	inf := F(math.Inf(-1))
	allow = allow[:len(x)]
	for i := range x {
		if !allow[i] {
			x[i] = inf
		}
	}
}
