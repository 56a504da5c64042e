package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Linear is y = x·Wᵀ + b, with W of shape (Out, In) and b of shape (Out), as in PyTorch.
type Linear struct {
	Weight *Param
	Bias   *Param // nil for none

	name string
}

// LinearConfig describes a Linear.
type LinearConfig struct {
	In, Out    int
	NoBias     bool
	WeightInit Init // XavierUniform if nil
	BiasInit   Init // Zeros if nil
}

// NewLinear makes a Linear with the parameters "weight" and, unless NoBias, "bias".
func NewLinear(p *Params, c LinearConfig) (*Linear, error) {
	l := &Linear{name: p.scopeName("linear")}
	if err := positive(l.name, size{"In", c.In}, size{"Out", c.Out}); err != nil {
		return nil, err
	}
	if c.WeightInit == nil {
		c.WeightInit = XavierUniform
	}
	if c.BiasInit == nil {
		c.BiasInit = Zeros
	}
	var err error
	if l.Weight, err = p.New("weight", c.WeightInit, c.Out, c.In); err != nil {
		return nil, err
	}
	if !c.NoBias {
		l.Bias, err = p.New("bias", c.BiasInit, c.Out)
	}
	return l, err
}

// Forward maps x of shape (…, In) to (…, Out).
func (l *Linear) Forward(b *Build, x *G.Node) (*G.Node, error) {
	return l.forward(b, x, ops.Identity)
}

// forward is Forward with an activation after it, in one op.
func (l *Linear) forward(b *Build, x *G.Node, act ops.Activation) (*G.Node, error) {
	if err := checkInput(l.name, "the input", x, l.Weight.Value.Dtype(), l.Weight.Value.Shape()[1]); err != nil {
		return nil, err
	}
	w, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	var bias *G.Node
	if l.Bias != nil {
		if bias, err = b.Bind(x.Graph(), l.Bias); err != nil {
			return nil, err
		}
	}
	return ops.Linear(b.env(), x, w, bias, act)
}
