package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/text"
)

// An Init is the distribution of the initial values of a parameter. For a weight of shape (O, I) the fan-in is I and
// the fan-out O. The zero Init means the Init of the enclosing configuration; if no configuration sets one, weights use
// xavier_uniform. The functions Zeros, Ones, Normal and Uniform return Inits of the first four kinds:
//
//	zeros, ones      0 or 1
//	normal           the normal distribution with mean 0 and standard deviation Scale
//	uniform          uniform in [−Scale, Scale)
//	xavier_uniform   uniform in ±√(6/(fan-in + fan-out)) (Glorot and Bengio, 2010)
//	xavier_normal    the normal distribution with variance 2/(fan-in + fan-out)
//	he_uniform       uniform in ±√(6/fan-in), for layers that a ReLU follows (He et al., 2015)
//	he_normal        the normal distribution with variance 2/fan-in
//
// An Init with a Func can't be written to JSON.
type Init struct {
	Kind  string  `json:"kind,omitzero"`
	Scale float64 `json:"scale,omitzero"` // standard deviation for normal, limit for uniform, 0 for all other kinds

	// Func, if not nil, sets a parameter's values, in row-major order. Kind and Scale must then be zero. The argument
	// rng is already seeded.
	Func func(rng *rand.Rand, values []float64, shape []int) `json:"-"`
}

// MarshalJSON returns the Init as JSON. It returns an error if the Init has a Func.
func (i Init) MarshalJSON() ([]byte, error) {
	if i.Func != nil {
		return nil, errors.New("an Init with a Func can't be written to JSON: use one with a Kind")
	}
	type plain Init
	return json.Marshal(plain(i))
}

// Zeros sets every element to 0.
func Zeros() Init { return Init{Kind: "zeros"} }

// Ones sets every element to 1.
func Ones() Init { return Init{Kind: "ones"} }

// Normal draws from the normal distribution with mean 0 and the given standard deviation.
func Normal(std float64) Init { return Init{Kind: "normal", Scale: std} }

// Uniform draws uniformly from [−limit, limit).
func Uniform(limit float64) Init { return Init{Kind: "uniform", Scale: limit} }

// An initialiser is a distribution with its scale, a function of fan-in and fan-out.
type initialiser struct {
	distribution
	scale func(fanIn, fanOut float64) float64 // nil if the Init's Scale is used
}

var inits = choices.Table[initialiser]{
	{Name: "zeros", Value: initialiser{constant, func(_, _ float64) float64 { return 0 }}},
	{Name: "ones", Value: initialiser{constant, func(_, _ float64) float64 { return 1 }}},
	{Name: "normal", Value: initialiser{normal, nil}},
	{Name: "uniform", Value: initialiser{uniform, nil}},
	{Name: "xavier_uniform", Value: initialiser{uniform, func(fanIn, fanOut float64) float64 { return math.Sqrt(6 / (fanIn + fanOut)) }}},
	{Name: "xavier_normal", Value: initialiser{normal, func(fanIn, fanOut float64) float64 { return math.Sqrt(2 / (fanIn + fanOut)) }}},
	{Name: "he_uniform", Value: initialiser{uniform, func(fanIn, _ float64) float64 { return math.Sqrt(6 / fanIn) }}},
	{Name: "he_normal", Value: initialiser{normal, func(fanIn, _ float64) float64 { return math.Sqrt(2 / fanIn) }}},
}

// i.or(other) returns i, or other if i is zero.
func (i Init) or(other Init) Init {
	if i.Kind == "" && i.Scale == 0 && i.Func == nil {
		return other
	}
	return i
}

// check checks the settings of an Init.
func (i Init) check() error {
	kind, ok := inits.Get(i.Kind)
	switch {
	case i.Func != nil && (i.Kind != "" || i.Scale != 0):
		return fmt.Errorf("an Init with a Func can't have a Kind or a Scale, got Kind %q and Scale %v", i.Kind, i.Scale)
	case i.Func != nil:
	case !ok:
		return fmt.Errorf("there is no initialiser %.100q: use one of %s%s", i.Kind, inits, text.DidYouMean(i.Kind, inits.Names()))
	case kind.scale == nil && !(i.Scale >= 0 && i.Scale <= ops.Largest):
		return fmt.Errorf("the Scale of %s must be from 0 to %v, got %v", i.Kind, ops.Largest, i.Scale)
	case kind.scale != nil && i.Scale != 0:
		return fmt.Errorf("%s can't have a Scale, got %v", i.Kind, i.Scale)
	}
	return nil
}

// fill draws the values of a parameter with a checked Init.
func fill[T float32 | float64](i Init, rng *rand.Rand, values []T, shape []int) error {
	if i.Func == nil {
		kind, _ := inits.Get(i.Kind)
		if kind.scale != nil {
			i.Scale = kind.scale(fans(shape))
		}
		draw(kind.distribution, rng, values, i.Scale)
		return nil
	}
	set := make([]float64, len(values))
	i.Func(rng, set, shape)
	for j, x := range set {
		if !(math.Abs(x) <= ops.Largest) {
			return fmt.Errorf("the Func of an Init must set numbers of at most %v in size, got %v at element %d", ops.Largest, x, j)
		}
		values[j] = T(x)
	}
	return nil
}

// fans returns the fan-in and fan-out of a weight: its last axis, and the product of its other axes. The first of three
// axes counts matrices.
func fans(shape []int) (fanIn, fanOut float64) {
	fanIn, fanOut = 1, 1
	if len(shape) == 3 {
		shape = shape[1:]
	}
	if len(shape) > 0 {
		fanIn = float64(shape[len(shape)-1])
		for _, d := range shape[:len(shape)-1] {
			fanOut *= float64(d)
		}
	}
	return fanIn, fanOut
}
