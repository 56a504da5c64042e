package kernel

import "math"

// grain is how many elements of elementwise work one task takes: enough to outweigh handing it to another goroutine.
const grain = 16384

// split runs body over [0, n) in pieces of fixed size, the last one shorter, in parallel if there are several.
func split(n, size int, body func(lo, hi int)) {
	if n <= size {
		body(0, n)
		return
	}
	Parallel((n+size-1)/size, func(i int) { body(i*size, min((i+1)*size, n)) })
}

// rowsPerTask is how many rows of a width make a task.
func rowsPerTask(width int) int { return max(1, grain/max(width, 1)) }

// Add sets out to x + y.
func Add[F Float](out, x, y []F) {
	split(len(out), grain, func(lo, hi int) {
		out, x, y := out[lo:hi], x[lo:hi], y[lo:hi]
		for i := range out {
			out[i] = x[i] + y[i]
		}
	})
}

// AddRow adds row to every row of m, which has len(m)/len(row) of them.
func AddRow[F Float](m, row []F) {
	w := len(row)
	split(len(m)/w, rowsPerTask(w), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			out := m[r*w:][:w]
			for i, b := range row {
				out[i] += b
			}
		}
	})
}

// SumRows sets sum to the sum of the rows of m, each of len(sum) elements.
func SumRows[F Float](sum, m []F) {
	w := len(sum)
	clear(sum)
	for r := 0; r < len(m); r += w {
		for i, x := range m[r:][:w] {
			sum[i] += x
		}
	}
}

// SkipMul sets out to x·y, where zero in y gives zero whatever x is.
func SkipMul[F Float](out, x, y []F) {
	split(len(out), grain, func(lo, hi int) {
		out, x, y := out[lo:hi], x[lo:hi], y[lo:hi]
		for i := range out {
			if y[i] == 0 {
				out[i] = 0
			} else {
				out[i] = x[i] * y[i]
			}
		}
	})
}

// SwapAxes copies src, read as (n, a, b, width), to dst as (n, b, a, width).
func SwapAxes[F Float](dst, src []F, n, a, b, width int) {
	split(n, max(1, grain/max(1, a*b*width)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s, d := src[i*a*b*width:], dst[i*a*b*width:]
			for j := range a {
				for k := range b {
					copy(d[(k*a+j)*width:][:width], s[(j*b+k)*width:][:width])
				}
			}
		}
	})
}

// ReLU sets y to max(0, x).
func ReLU[F Float](y, x []F) {
	split(len(y), grain, func(lo, hi int) {
		y, x := y[lo:hi], x[lo:hi]
		for i, v := range x {
			y[i] = max(v, 0)
		}
	})
}

// ReLUGrad sets dx to g where x is above 0, and to 0 elsewhere.
func ReLUGrad[F Float](dx, x, g []F) {
	split(len(dx), grain, func(lo, hi int) {
		dx, x, g := dx[lo:hi], x[lo:hi], g[lo:hi]
		for i, v := range x {
			if v > 0 {
				dx[i] = g[i]
			} else {
				dx[i] = 0
			}
		}
	})
}

// GELU sets y to x·Φ(x) = x·(1 + erf(x/√2))/2.
func GELU[F Float](y, x []F) {
	split(len(y), grain, func(lo, hi int) {
		y, x := y[lo:hi], x[lo:hi]
		for i, v := range x {
			y[i] = F(float64(v) * normalCDF(float64(v)))
		}
	})
}

// GELUGrad sets dx to g·(Φ(x) + x·φ(x)).
func GELUGrad[F Float](dx, x, g []F) {
	split(len(dx), grain, func(lo, hi int) {
		dx, x, g := dx[lo:hi], x[lo:hi], g[lo:hi]
		for i, v := range x {
			if g[i] == 0 {
				dx[i] = 0
				continue
			}
			v := float64(v)
			density := math.Exp(-v*v/2) / math.Sqrt(2*math.Pi)
			dx[i] = F(float64(g[i]) * (normalCDF(v) + v*density))
		}
	})
}

// normalCDF is Φ, the distribution function of the standard normal.
func normalCDF(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }

// The tanh approximation of GELU: y = x/2·(1 + tanh(c·(x + a·x³))).
const (
	geluC = 0.7978845608028654 // √(2/π)
	geluA = 0.044715
)

// GELUTanh sets y to the tanh approximation of x·Φ(x).
func GELUTanh[F Float](y, x []F) {
	split(len(y), grain, func(lo, hi int) {
		y, x := y[lo:hi], x[lo:hi]
		for i, v := range x {
			v := float64(v)
			y[i] = F(v / 2 * (1 + math.Tanh(geluC*(v+geluA*v*v*v))))
		}
	})
}

// GELUTanhGrad sets dx to g times the derivative of GELUTanh.
func GELUTanhGrad[F Float](dx, x, g []F) {
	split(len(dx), grain, func(lo, hi int) {
		dx, x, g := dx[lo:hi], x[lo:hi], g[lo:hi]
		for i, v := range x {
			if g[i] == 0 {
				dx[i] = 0
				continue
			}
			v := float64(v)
			t := math.Tanh(geluC * (v + geluA*v*v*v))
			dx[i] = F(float64(g[i]) * ((1+t)/2 + v/2*(1-t*t)*geluC*(1+3*geluA*v*v)))
		}
	})
}
