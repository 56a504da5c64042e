package kernel

import "math"

// MuonStep holds the constants of one step of Muon.
type MuonStep struct {
	Rate, Momentum, Decay float64
	GradScale             float64 // gradients are multiplied by it first
	Iterations            int     // number of Newton–Schulz iterations
	OutIn                 bool    // the matrix has out rows: (out, in)
}

// muonWork is memory for a step of Muon.
type muonWork[F Float] struct{ x, next, gram, poly []F }

// Muon updates the (in, out) matrix w by its gradient g, with a running mean, and sets g to zero. It makes the running
// mean, taken one step ahead, nearly orthogonal, multiplies it by the rate and by max(1, out/in)^½, and subtracts it
// (Jordan et al., 2024).
func Muon[F Float](cores int, w, g, mean []F, in, out int, s MuonStep) {
	const cost = 4
	b := bodyOf[F]()
	work := take[muonWork[F]](&b.muon)
	work.x = grown(work.x, len(w))
	x := work.x
	runRanges(cores, len(w), grain/cost, cost*len(w), func(lo, hi int) {
		x, g, mean := x[lo:hi], g[lo:hi], mean[lo:hi]
		b.scale(g, F(s.GradScale))
		approach(b, mean, g, 1-s.Momentum)
		copy(x, mean)
		approach(b, x, g, 1-s.Momentum)
	})
	x = work.orthogonalize(cores, in, out, s.Iterations)
	if s.OutIn {
		in, out = out, in
	}
	rate := s.Rate * math.Sqrt(max(1, float64(out)/float64(in)))
	runRanges(cores, len(w), grain/cost, cost*len(w), func(lo, hi int) {
		b.scale(w[lo:hi], F(1-s.Rate*s.Decay))
		b.axpy(w[lo:hi], x[lo:hi], F(-rate))
		clear(g[lo:hi])
	})
	b.muon.Put(work)
}

// orthogonalize returns the (m, n) matrix x with its singular values moved towards 1: each iteration applies the odd
// polynomial a·s + b·s³ + c·s⁵ to them. It works on the smaller side: for m ≤ n it computes (a + b·G + c·G²)·X with the
// Gram matrix G = X·Xᵀ; otherwise X·(a + b·G + c·G²) with G = Xᵀ·X.
func (w *muonWork[F]) orthogonalize(cores, m, n, iterations int) []F {
	const a, b, c = 3.4445, -4.7750, 2.0315 // Jordan's coefficients: the steepest at 0 among those that end near 1
	wide := m <= n
	k, long := min(m, n), max(m, n)
	w.next, w.gram, w.poly = grown(w.next, m*n), grown(w.gram, k*k), grown(w.poly, k*k)
	scale(w.x, F(1/(math.Sqrt(SumSquares(w.x))+1e-7))) // no singular value is above the Frobenius norm
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
