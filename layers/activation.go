package layers

import (
	"fmt"
	"iter"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// An Activation is a function applied to every element.
type Activation int

const (
	ReLU     Activation = Activation(ops.ReLU)     // max(0, x)
	GELU     Activation = Activation(ops.GELU)     // x·Φ(x), exact (Hendrycks and Gimpel, 2016)
	GELUTanh Activation = Activation(ops.GELUTanh) // GELU by its tanh approximation
	SiLU     Activation = Activation(ops.SiLU)     // x·σ(x) = x/(1 + exp(−x)), also called Swish (Elfwing et al., 2017)
)

// Activations yields the name of each activation and a one-line description.
func Activations() iter.Seq2[string, string] { return ops.Activations.All() }

// String returns the activation's name: relu, gelu, gelu tanh or silu.
func (a Activation) String() string {
	if op := ops.Activation(a); op.Known() {
		return op.String()
	}
	return fmt.Sprintf("activation %d", int(a))
}

// check returns an error if a is not a defined activation.
func (a Activation) check() error {
	if ops.Activation(a).Known() {
		return nil
	}
	return fmt.Errorf("there is no %v: use one of %s", a, ops.Activations)
}

// MarshalText returns the activation's name, or an error if a is not a defined activation.
func (a Activation) MarshalText() ([]byte, error) { return []byte(a.String()), a.check() }

// UnmarshalText sets the activation by name. It returns an error if no activation has that name.
func (a *Activation) UnmarshalText(text []byte) error {
	op, ok := ops.Activations.Get(string(text))
	if !ok {
		return fmt.Errorf("there is no activation %.100q: use one of %s", text, ops.Activations)
	}
	*a = Activation(op)
	return nil
}

// Forward applies the activation to x, which is float32 or float64 and may have any shape.
func (a Activation) Forward(b *Build, x *G.Node) (*G.Node, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return ops.Activate(b.Env(), x, ops.Activation(a))
}
