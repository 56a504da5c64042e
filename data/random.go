package data

import "math/rand/v2"

// Uses of random numbers. For the same seed, each use has its own stream of numbers.
const (
	forValidation uint64 = iota + 1
	forTraining
	forText
	forMasks
)

// newRand returns a source of random numbers that depends on all its arguments.
func newRand(seed, use uint64, epoch, step int) *rand.Rand {
	return rand.New(rand.NewPCG(mix(seed)+use, mix(mix(uint64(epoch))+uint64(step))))
}

// hash returns a seeded hash of a string: FNV-1a over the bytes of the seed, least significant first, and of the
// string. It then mixes the bits, because FNV's high bits are poor for short strings. It must never change, because
// splits depend on it.
func hash(seed uint64, s string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range 8 {
		h = (h ^ seed>>(8*i)&0xff) * prime
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return mix(h)
}

// mix is a bijection in which every bit of the argument affects every bit of the result: SplitMix64's finalizer
// (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Place returns the place of a key in a random order: at least 0 and below 1. Hold out a tenth of some rows by
// Place(seed, key) < 0.1, where the key is the source of a row. Then all rows with one key are for validation, or all
// are for training. The place depends only on a seeded hash of the key, so it is the same on every machine. A larger
// share holds out the keys of a smaller share, and more.
func Place(seed uint64, key string) float64 { return float64(hash(seed, key)>>11) / (1 << 53) }
