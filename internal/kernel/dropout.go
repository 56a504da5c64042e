package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// DropoutMask sets each element of keep to 0 with probability p, and to 1/(1−p) otherwise. The choice depends only on
// seed, stream and run.
func DropoutMask[F Float](cores int, keep []F, p float64, seed, stream, run uint64) {
	d := dropoutOf[F](p, seed, stream, run)
	runLoop[F](cores, dropoutLoop[F]{}, len(keep), &loopWork[F]{n: len(keep), step: grain, out: keep, choice: d})
}

type dropoutLoop[F Float] struct{}

func (dropoutLoop[F]) run(w *loopWork[F], lo, hi int) {
	w.choice.fill(w.body, w.out[lo:hi], uint64(lo))
}

// dropoutChoice defines which elements DropoutMask drops from a tensor of any size. Its method fill computes the
// factors of any range of elements.
type dropoutChoice[F Float] struct {
	key       uint64
	threshold uint32 // an element is dropped if its random bits are smaller
	scale     F
}

func dropoutOf[F Float](p float64, seed, stream, run uint64) dropoutChoice[F] {
	return dropoutChoice[F]{mix64(mix64(mix64(seed)+stream) + run), uint32(p * (1 << 32)), F(1 / (1 - p))}
}

// fill sets keep to the factors of the elements from index first on. Every block of grain elements has its own key.
func (d *dropoutChoice[F]) fill(body *body[F], keep []F, first uint64) {
	for len(keep) > 0 {
		i := first % grain
		n := min(len(keep), int(grain-i))
		key := mix64(d.key + first/grain)
		body.dropout(keep[:n], uint32(key)+uint32(i)*portable.DropoutStep, uint32(key>>32), d.threshold, d.scale)
		keep, first = keep[n:], first+uint64(n)
	}
}

// mix64 mixes the bits of a key (Steele, Lea and Flood, 2014: SplitMix64).
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
