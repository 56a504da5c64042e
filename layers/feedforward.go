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
	SiLU                       // x·σ(x) = x/(1 + exp(−x)), also called Swish (Elfwing et al., 2017)
)

var activations = map[Activation]ops.Activation{ReLU: ops.ReLU, GELU: ops.GELU, GELUTanh: ops.GELUTanh, SiLU: ops.SiLU}

// String is the activation's name: relu, gelu, gelu tanh or silu.
func (a Activation) String() string {
	if op, ok := activations[a]; ok {
		return op.String()
	}
	return fmt.Sprintf("activation %d", int(a))
}

// Forward applies the activation to x, of any shape, float32 or float64.
func (a Activation) Forward(b *Build, x *G.Node) (*G.Node, error) {
	op, ok := activations[a]
	if !ok {
		return nil, fmt.Errorf("there is no %v: use ReLU, GELU, GELUTanh or SiLU", a)
	}
	if err := ops.CheckFloat(a.String(), "the input", x); err != nil {
		return nil, err
	}
	return ops.Activate(b.env(), x, op)
}

// FeedForward is two linear layers with an activation between them, the same for every position (Vaswani et al., 2017,
// section 3.3): down(activation(up(x))). Gated, it is down(activation(gate(x))∘up(x)), which is known as SwiGLU with SiLU,
// as GEGLU with GELU and as ReGLU with ReLU (Shazeer, 2020).
type FeedForward struct {
	Gate       *Linear // nil unless gated
	Up, Down   *Linear
	Activation Activation
	Dropout    Dropout // of the hidden units
}

// FeedForwardConfig describes a FeedForward.
type FeedForwardConfig struct {
	Dim        int // width of input and output
	Hidden     int // width between; 4·Dim if 0
	Activation Activation
	Gated      bool    // a third layer, gate; Shazeer takes two thirds of Hidden then, for as many parameters
	NoBias     bool    // leave out the biases, as Shazeer does
	Dropout    float64 // of the hidden units, in training
	Init       Init    // of every weight; XavierUniform if nil
}

// NewFeedForward makes a FeedForward with the scopes gate (if Gated), up and down, each with the parameters weight and,
// unless NoBias, bias.
func NewFeedForward(p *Params, c FeedForwardConfig) (*FeedForward, error) {
	name := p.scopeName("feed-forward")
	if err := positive(name, size{"Dim", c.Dim}); err != nil {
		return nil, err
	}
	if err := ops.CheckRate(name, c.Dropout); err != nil {
		return nil, err
	}
	if _, ok := activations[c.Activation]; !ok {
		return nil, fmt.Errorf("%s: there is no %v: use ReLU, GELU, GELUTanh or SiLU", name, c.Activation)
	}
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Dim
	}
	if err := positive(name, size{"Hidden", c.Hidden}); err != nil {
		return nil, err
	}
	f := &FeedForward{Activation: c.Activation, Dropout: Dropout{c.Dropout}}
	in := LinearConfig{In: c.Dim, Out: c.Hidden, NoBias: c.NoBias, WeightInit: c.Init}
	var err error
	if c.Gated {
		if f.Gate, err = NewLinear(p.Scope("gate"), in); err != nil {
			return nil, err
		}
	}
	if f.Up, err = NewLinear(p.Scope("up"), in); err != nil {
		return nil, err
	}
	f.Down, err = NewLinear(p.Scope("down"), LinearConfig{In: c.Hidden, Out: c.Dim, NoBias: c.NoBias, WeightInit: c.Init})
	return f, err
}

// Forward maps x of shape (…, Dim) to the same shape.
func (f *FeedForward) Forward(b *Build, x *G.Node) (*G.Node, error) {
	op, ok := activations[f.Activation]
	if !ok {
		return nil, fmt.Errorf("there is no %v: use ReLU, GELU, GELUTanh or SiLU", f.Activation)
	}
	if f.Gate == nil && b != nil && b.Composed {
		return chain(b, x, f.Up, f.Activation, f.Dropout, f.Down)
	}
	if f.Gate == nil {
		hidden, err := f.Up.forward(b, x, op) // (…, Dim) -> (…, Hidden)
		if err != nil {
			return nil, err
		}
		return chain(b, hidden, f.Dropout, f.Down)
	}
	gate, err := f.Gate.Forward(b, x) // (…, Dim) -> (…, Hidden)
	if err != nil {
		return nil, err
	}
	up, err := f.Up.Forward(b, x) // (…, Dim) -> (…, Hidden)
	if err != nil {
		return nil, err
	}
	hidden, err := ops.Gate(b.env(), gate, up, op)
	if err != nil {
		return nil, err
	}
	return chain(b, hidden, f.Dropout, f.Down)
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
