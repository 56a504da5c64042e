package kernel

import "math"

// MuonStep holds the constants of one step of Muon.
type MuonStep struct {
	Rate, Momentum, Decay float64
	GradScale             float64 // factor of the gradients, applied first
	Iterations            int     // number of Newton–Schulz iterations
	OutIn                 bool    // the layer's weight has shape (out, in), not (in, out)
}

// muonWork is memory for a step of Muon.
type muonWork[F Float] struct{ x, next, gram, poly []F }

// Muon updates the matrix w, which has inputs rows and outputs columns, and its running mean from the gradient g, which
// it overwrites. If s.OutIn is set, the rows are the layer's outputs, otherwise its inputs. Muon averages the running
// mean with g once more (Nesterov momentum) and makes the result nearly orthogonal. It shrinks w by weight decay, then
// subtracts the result times the rate and max(1, outputs/inputs)^½ (Jordan et al., 2024).
func Muon[F Float](cores int, w, g, mean []F, inputs, outputs int, s MuonStep) {
	b := bodyOf[F]()
	work := take[muonWork[F]](&b.muon)
	work.x = grown(work.x, len(w))
	x := work.x
	runElements(cores, len(w), 4, func(lo, hi int) {
		x, g, mean := x[lo:hi], g[lo:hi], mean[lo:hi]
		b.scale(g, F(s.GradScale))
		approach(b, mean, g, 1-s.Momentum)
		copy(x, mean)
		approach(b, x, g, 1-s.Momentum)
	})
	x = work.orthogonalize(cores, inputs, outputs, s.Iterations)
	if s.OutIn {
		inputs, outputs = outputs, inputs
	}
	rate := s.Rate * math.Sqrt(max(1, float64(outputs)/float64(inputs)))
	runElements(cores, len(w), 4, func(lo, hi int) {
		b.scale(w[lo:hi], F(1-s.Rate*s.Decay))
		b.axpy(w[lo:hi], x[lo:hi], F(-rate))
	})
	b.muon.Put(work)
}

// orthogonalize returns the (m, n) matrix x with its singular values moved towards 1. Each iteration applies the odd
// polynomial a·s + b·s³ + c·s⁵ to the singular values. It uses the smaller Gram matrix. If m ≤ n, it computes (a + b·G
// + c·G²)·X with G = X·Xᵀ. Otherwise it computes X·(a + b·G + c·G²) with G = Xᵀ·X.
func (w *muonWork[F]) orthogonalize(cores, m, n, iterations int) []F {
	const a, b, c = 3.4445, -4.7750, 2.0315 // Jordan's coefficients: steep at 0, and the values still end near 1
	wide := m <= n
	k, long := min(m, n), max(m, n)
	w.next, w.gram, w.poly = grown(w.next, m*n), grown(w.gram, k*k), grown(w.poly, k*k)
	bodyOf[F]().scale(w.x, F(1/(math.Sqrt(SumSquares(w.x))+1e-7))) // no singular value exceeds the Frobenius norm
	for range iterations {
		Gemm(cores, !wide, wide, k, k, long, 1, w.x, n, w.x, n, 0, w.gram, k) // (k, long) x (long, k) -> (k, k)
		copy(w.poly, w.gram)
		Gemm(cores, false, false, k, k, k, c, w.gram, k, w.gram, k, b, w.poly, k)
		copy(w.next, w.x)
		if wide {
			Gemm(cores, false, false, m, n, m, 1, w.poly, m, w.x, n, a, w.next, n)
		} else {
			Gemm(cores, false, false, m, n, n, 1, w.x, n, w.poly, n, a, w.next, n)
		}
		w.x, w.next = w.next, w.x
	}
	return w.x
}
