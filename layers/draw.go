package layers

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// A distribution draws the numbers that an Init multiplies by its scale.
type distribution struct {
	next func(rng *rand.Rand) float64      // the next number of a small parameter
	fill func(s stream, numbers []float64) // numbers of a large parameter: number i is made from s.at(i)
}

var (
	constant = distribution{func(*rand.Rand) float64 { return 1 }, fillConstant}
	normal   = distribution{(*rand.Rand).NormFloat64, fillNormal}
	uniform  = distribution{func(rng *rand.Rand) float64 { return 2*rng.Float64() - 1 }, fillUniform}
)

const (
	drawSmall = 1 << 18 // elements of the largest small parameter
	drawPart  = 1 << 16 // elements of a large parameter that one goroutine draws
)

// draw sets values to numbers from d, times scale. It draws a small parameter's numbers one after the other from rng,
// and a large parameter's numbers on all cores, each from its place in a stream that rng starts.
func draw[T float32 | float64](d distribution, rng *rand.Rand, values []T, scale float64) {
	if len(values) <= drawSmall {
		for i := range values {
			values[i] = T(d.next(rng) * scale)
		}
		return
	}
	s := stream(rng.Uint64())
	var wait sync.WaitGroup
	for part := range slices.Chunk(values, drawPart) {
		begin := s
		s = s.at(len(part))
		wait.Go(func() {
			var numbers [512]float64
			for i := 0; i < len(part); i += len(numbers) {
				drawn := numbers[:min(len(numbers), len(part)-i)]
				d.fill(begin.at(i), drawn)
				for j, x := range drawn {
					part[i+j] = T(x * scale)
				}
			}
		})
	}
	wait.Wait()
}

func fillConstant(_ stream, numbers []float64) {
	for i := range numbers {
		numbers[i] = 1
	}
}

func fillUniform(s stream, numbers []float64) {
	for i := range numbers {
		numbers[i] = 2*s.at(i).uniform() - 1
	}
}

// fillNormal draws from the normal distribution with mean 0 and standard deviation 1 (Marsaglia and Tsang, The Ziggurat
// Method for Generating Random Variables, 2000). Most layers lie nearly whole under the density, so few numbers need
// another test.
func fillNormal(s stream, numbers []float64) {
	for i := range numbers {
		x, layer := s.at(i).layered()
		if !(math.Abs(x) < ziggurat[layer+1]) {
			x = s.at(i).edge(x, layer)
		}
		numbers[i] = x
	}
}

// A stream is a place in the sequence of random 64-bit numbers that SplitMix64 draws (Steele, Lea and Flood, Fast
// Splittable Pseudorandom Number Generators, 2014).
type stream uint64

// at returns the place i numbers after s.
func (s stream) at(i int) stream { return s + stream(i)*0x9e3779b97f4a7c15 }

// bits returns the number at s.
func (s stream) bits() uint64 {
	z := uint64(s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uniform returns a number from [0, 1).
func (s stream) uniform() float64 { return float64(s.bits()>>11) / (1 << 53) }

// ziggurat has the edges of 256 layers of equal area that cover the area under the density exp(−x²/2) for x ≥ 0. Layer
// i goes from 0 to ziggurat[i], and lies under the density up to ziggurat[i+1]. Layer 0 is a rectangle up to
// ziggurat[1] and the tail beyond; ziggurat[0] is the width of a rectangle with the same height and area. heights has
// the density at the edges.
var ziggurat, heights = func() (edges, heights [257]float64) {
	const area, tail = 0.00492867323399, 3.6541528853610088 // from Marsaglia and Tsang
	edges[0], edges[1] = area/density(tail), tail
	for i := 2; i < 256; i++ {
		edges[i] = math.Sqrt(-2 * math.Log(area/edges[i-1]+density(edges[i-1])))
	}
	for i, x := range edges {
		heights[i] = density(x)
	}
	return edges, heights
}()

func density(x float64) float64 { return math.Exp(-x * x / 2) }

// layered returns a random layer of the ziggurat, and a number between minus its width and its width.
func (s stream) layered() (x float64, layer int) {
	bits := s.bits()
	layer = int(bits % 256)
	return float64(int64(bits)) / (1 << 63) * ziggurat[layer], layer
}

// edge returns a normal number for an x that lies where its layer isn't wholly under the density: x if a random point
// of the layer above x is under the density, and another number otherwise. It draws from the stream that begins at the
// number at s.
func (s stream) edge(x float64, layer int) float64 {
	for s = stream(s.bits()); ; s = s.at(2) {
		if layer == 0 {
			return math.Copysign(s.tail(), x)
		}
		low, high := heights[layer], heights[layer+1]
		if low+s.at(1).uniform()*(high-low) < density(x) {
			return x
		}
		if x, layer = s.at(2).layered(); math.Abs(x) < ziggurat[layer+1] {
			return x
		}
	}
}

// tail returns a normal number beyond ziggurat[1] (Marsaglia, Generating a Variable from the Tail of the Normal
// Distribution, 1964).
func (s stream) tail() float64 {
	for ; ; s = s.at(2) {
		x, y := -math.Log(1-s.at(1).uniform())/ziggurat[1], -math.Log(1-s.at(2).uniform())
		if 2*y > x*x {
			return ziggurat[1] + x
		}
	}
}
