package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
)

// An Activation is a function applied to every element.
type Activation int

const (
	ReLU     Activation = Activation(ops.ReLU)     // max(0, x)
	GELU     Activation = Activation(ops.GELU)     // x·Φ(x), exact (Hendrycks and Gimpel, 2016)
	GELUTanh Activation = Activation(ops.GELUTanh) // GELU, approximated with tanh (Hendrycks and Gimpel, 2016)
	SiLU     Activation = Activation(ops.SiLU)     // x·σ(x) = x/(1 + exp(−x)), also called Swish (Elfwing et al., 2017)
	Tanh     Activation = Activation(ops.Tanh)     // tanh(x)
	Sigmoid  Activation = Activation(ops.Sigmoid)  // σ(x) = 1/(1 + exp(−x))
)

var activations = choices.NumbersOf[Activation]("activation", ops.Activations)

// String returns the activation's name, such as relu.
func (a Activation) String() string { return activations.Name(a) }

func (a Activation) check() error { return activations.Check(a) }

// MarshalText returns the activation's name, or an error if a is not a defined activation.
func (a Activation) MarshalText() ([]byte, error) { return []byte(a.String()), a.check() }

// UnmarshalText sets the activation by name. It returns an error if no activation has that name.
func (a *Activation) UnmarshalText(name []byte) error { return activations.Set(a, string(name)) }

// Forward applies the activation to x, which is float32 or float64 and may have any shape.
func (a Activation) Forward(b *Build, x *G.Node) (*G.Node, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return ops.Activate(b.Env(), x, ops.Activation(a))
}
