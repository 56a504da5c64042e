package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// An Activation is a function applied to every element.
type Activation int

const (
	ReLU     Activation = iota // max(0, x)
	GELU                       // x·Φ(x), exact (Hendrycks and Gimpel, 2016)
	GELUTanh                   // GELU by its tanh approximation
)

var activations = map[Activation]ops.Activation{ReLU: ops.ReLU, GELU: ops.GELU, GELUTanh: ops.GELUTanh}

// String is the activation's name: relu, gelu or gelu tanh.
func (a Activation) String() string {
	if op, ok := activations[a]; ok {
		return op.String()
	}
	return fmt.Sprintf("activation %d", int(a))
}

// Forward applies the activation to x, of any shape, float32 or float64.
func (a Activation) Forward(_ *Build, x *G.Node) (*G.Node, error) {
	op, ok := activations[a]
	if !ok {
		return nil, fmt.Errorf("there is no %v: use ReLU, GELU or GELUTanh", a)
	}
	if err := checkFloat(a.String(), "the input", x); err != nil {
		return nil, err
	}
	return ops.Activate(x, op)
}

// FeedForward is two linear layers with an activation between them, the same for every position (Vaswani et al., 2017,
// section 3.3): down(activation(up(x))).
type FeedForward struct {
	Up, Down   *Linear
	Activation Activation
	Dropout    Dropout // after the activation
}

// FeedForwardConfig describes a FeedForward.
type FeedForwardConfig struct {
	Dim        int // width of input and output
	Hidden     int // width between; 4·Dim if 0
	Activation Activation
	Dropout    float64 // after the activation, in training
	Init       Init    // of both weights; XavierUniform if nil
}

// NewFeedForward makes a FeedForward with the parameters up.weight, up.bias, down.weight and down.bias.
func NewFeedForward(p *Params, c FeedForwardConfig) (*FeedForward, error) {
	name := p.scopeName("feed-forward")
	if err := positive(name, size{"Dim", c.Dim}); err != nil {
		return nil, err
	}
	if err := checkRate(name, c.Dropout); err != nil {
		return nil, err
	}
	if _, ok := activations[c.Activation]; !ok {
		return nil, fmt.Errorf("%s: there is no %v: use ReLU, GELU or GELUTanh", name, c.Activation)
	}
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Dim
	}
	if err := positive(name, size{"Hidden", c.Hidden}); err != nil {
		return nil, err
	}
	up, err := NewLinear(p.Scope("up"), LinearConfig{In: c.Dim, Out: c.Hidden, WeightInit: c.Init})
	if err != nil {
		return nil, err
	}
	down, err := NewLinear(p.Scope("down"), LinearConfig{In: c.Hidden, Out: c.Dim, WeightInit: c.Init})
	if err != nil {
		return nil, err
	}
	return &FeedForward{Up: up, Down: down, Activation: c.Activation, Dropout: Dropout{c.Dropout}}, nil
}

// Forward maps x of shape (…, Dim) to the same shape.
func (f *FeedForward) Forward(b *Build, x *G.Node) (*G.Node, error) {
	op, ok := activations[f.Activation]
	if !ok {
		return nil, fmt.Errorf("there is no %v: use ReLU, GELU or GELUTanh", f.Activation)
	}
	x, err := f.Up.forward(b, x, op) // (…, Dim) -> (…, Hidden)
	if err != nil {
		return nil, err
	}
	return chain(b, x, f.Dropout, f.Down)
}

// A layer maps one node to another.
type layer interface {
	Forward(*Build, *G.Node) (*G.Node, error)
}

// chain applies layers one after the other.
func chain(b *Build, x *G.Node, layers ...layer) (*G.Node, error) {
	var err error
	for _, l := range layers {
		if x, err = l.Forward(b, x); err != nil {
			return nil, err
		}
	}
	return x, nil
}
