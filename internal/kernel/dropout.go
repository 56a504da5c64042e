package kernel

import "math/rand/v2"

// DropoutMask sets each element of keep to 0 with probability p, and to 1/(1−p) otherwise. The choice is a function of
// seed, stream and run alone.
func DropoutMask[F Float](keep []F, p float64, seed, stream, run uint64) {
	threshold := uint64(p * (1 << 32)) // of 32 random bits
	scale := F(1 / (1 - p))
	split(len(keep), grain, func(lo, hi int) {
		rng := rand.NewPCG(seed^stream<<32, run<<24^uint64(lo/grain))
		keep := keep[lo:hi]
		var bits uint64
		for i := range keep {
			if i%2 == 0 {
				bits = rng.Uint64()
			} else {
				bits >>= 32
			}
			if bits&(1<<32-1) < threshold {
				keep[i] = 0
			} else {
				keep[i] = scale
			}
		}
	})
}
