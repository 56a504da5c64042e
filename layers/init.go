package layers

import (
	"math"
	"math/rand/v2"
)

// An Init fills a new parameter's values, in row-major order, from a seeded source. For a weight of shape (O, I) the
// fan-in is I and the fan-out O.
type Init func(rng *rand.Rand, values []float64, shape []int)

// Zeros fills with 0.
func Zeros(_ *rand.Rand, values []float64, _ []int) { clear(values) }

// Ones fills with 1.
func Ones(_ *rand.Rand, values []float64, _ []int) {
	for i := range values {
		values[i] = 1
	}
}

// Normal draws from the normal distribution with mean 0 and the given standard deviation.
func Normal(std float64) Init {
	return func(rng *rand.Rand, values []float64, _ []int) {
		for i := range values {
			values[i] = rng.NormFloat64() * std
		}
	}
}

// Uniform draws uniformly from [−limit, limit).
func Uniform(limit float64) Init {
	return func(rng *rand.Rand, values []float64, _ []int) {
		for i := range values {
			values[i] = (2*rng.Float64() - 1) * limit
		}
	}
}

// XavierUniform draws from ±√(6/(fan-in + fan-out)) (Glorot and Bengio, 2010).
func XavierUniform(rng *rand.Rand, values []float64, shape []int) {
	in, out := fans(shape)
	Uniform(math.Sqrt(6/float64(in+out)))(rng, values, shape)
}

// XavierNormal draws from the normal distribution with variance 2/(fan-in + fan-out) (Glorot and Bengio, 2010).
func XavierNormal(rng *rand.Rand, values []float64, shape []int) {
	in, out := fans(shape)
	Normal(math.Sqrt(2/float64(in+out)))(rng, values, shape)
}

// HeUniform draws from ±√(6/fan-in), for layers that a ReLU follows (He et al., 2015).
func HeUniform(rng *rand.Rand, values []float64, shape []int) {
	in, _ := fans(shape)
	Uniform(math.Sqrt(6/float64(in)))(rng, values, shape)
}

// HeNormal draws from the normal distribution with variance 2/fan-in (He et al., 2015).
func HeNormal(rng *rand.Rand, values []float64, shape []int) {
	in, _ := fans(shape)
	Normal(math.Sqrt(2/float64(in)))(rng, values, shape)
}

// fans are the fan-in and fan-out of a weight: its last axis, and the product of the others.
func fans(shape []int) (in, out int) {
	in, out = 1, 1
	if len(shape) > 0 {
		in = shape[len(shape)-1]
		for _, d := range shape[:len(shape)-1] {
			out *= d
		}
	}
	return in, out
}
