package layers

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// FeedForward is two linear layers with an activation between them, applied at every position (Vaswani et al., 2017,
// section 3.3): down(activation(up(x))). The gated form is down(activation(gate(x))∘up(x)) (Shazeer, 2020). It is
// called SwiGLU with the activation SiLU, GEGLU with GELU, and ReGLU with ReLU. Make one with NewFeedForward.
type FeedForward struct {
	Gate       *Linear // nil unless gated
	Up, Down   *Linear
	Activation Activation
	Dropout    Dropout // for the hidden units

	// Experts, if not nil, compute the layer in place of Gate, Up and Down, which are nil.
	Experts *Experts
}

// FeedForwardConfig describes a FeedForward.
type FeedForwardConfig struct {
	Hidden     int        `json:"hidden,omitzero"` // width of the hidden layer; 4·Dim if 0
	Activation Activation `json:"activation,omitzero"`
	Gated      bool       `json:"gated,omitzero"`       // adds a third layer, gate; to keep the number of parameters, multiply Hidden by 2/3 (Shazeer, 2020)
	NoBias     bool       `json:"no_bias,omitzero"`     // leave out the biases, as in Shazeer, 2020
	Dropout    float64    `json:"dropout,omitzero"`     // dropout rate of the hidden units, in training
	Init       Init       `json:"init,omitzero"`        // for every weight; see Init
	OutputInit Init       `json:"output_init,omitzero"` // for the weight of down; Init if zero

	Experts *ExpertsConfig `json:"experts,omitzero"` // a mixture of such layers; nil for one layer
}

// NewFeedForward makes a FeedForward for vectors of width dim, with the scopes gate (if Gated), up and down, each with
// the parameters weight and, unless NoBias, bias. With Experts, these parameters have the weights of all experts, and
// there is the scope router.
func NewFeedForward(p *Params, dim int, c FeedForwardConfig) (*FeedForward, error) {
	name := p.scopeName("feed-forward")
	if err := cmp.Or(positive(name, size{"Dim", dim}), ops.CheckRate(name, c.Dropout)); err != nil {
		return nil, err
	}
	if err := c.Activation.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Hidden = cmp.Or(c.Hidden, memory.Product(4, dim))
	if err := positive(name, size{"Hidden", c.Hidden}); err != nil {
		return nil, err
	}
	f := &FeedForward{Activation: c.Activation, Dropout: Dropout{c.Dropout}}
	if c.Experts != nil {
		var err error
		f.Experts, err = newExperts(p, dim, c)
		return f, err
	}
	linear := LinearConfig{NoBias: c.NoBias, Init: c.Init}
	var errs [3]error
	if c.Gated {
		f.Gate, errs[0] = NewLinear(p.Scope("gate"), dim, c.Hidden, linear)
	}
	f.Up, errs[1] = NewLinear(p.Scope("up"), dim, c.Hidden, linear)
	linear.Init = c.OutputInit.or(c.Init)
	f.Down, errs[2] = NewLinear(p.Scope("down"), c.Hidden, dim, linear)
	return f, cmp.Or(errs[0], errs[1], errs[2])
}

// Forward maps x of shape (…, Dim) to the same shape.
func (f *FeedForward) Forward(b *Build, x *G.Node) (*G.Node, error) {
	if err := f.Activation.check(); err != nil {
		return nil, err
	}
	if f.Experts != nil {
		return f.Experts.Forward(b, x)
	}
	if f.Gate == nil {
		hidden, err := f.Up.activated(b, x, f.Activation) // (…, Dim) -> (…, Hidden)
		if err != nil {
			return nil, err
		}
		return chain(b, hidden, f.Dropout, f.Down)
	}
	gate, err := f.Gate.Forward(b, x) // (…, Dim) -> (…, Hidden)
	if err != nil {
		return nil, err
	}
	up, err := ops.Following(b.Env(), x, gate, func() (*G.Node, error) { return f.Up.Forward(b, x) }) // (…, Dim) -> (…, Hidden)
	if err != nil {
		return nil, err
	}
	hidden, err := ops.Gate(b.Env(), gate, up, ops.Activation(f.Activation))
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
