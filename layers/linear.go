package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Linear computes y = x·Wᵀ + b, with W of shape (Out, In) and b of shape (Out), as in PyTorch. Make one with
// NewLinear.
type Linear struct {
	Weight *Param
	Bias   *Param // nil without a bias

	name string
}

// LinearConfig describes a Linear.
type LinearConfig struct {
	NoBias   bool `json:"no_bias,omitzero"`   // leave out b
	Init     Init `json:"init,omitzero"`      // for W; see Init
	BiasInit Init `json:"bias_init,omitzero"` // for b; Zeros if zero
}

// NewLinear makes a Linear. The arguments in and out are the widths of its input and output. Its parameters are
// "weight" and, unless NoBias, "bias".
func NewLinear(p *Params, in, out int, c LinearConfig) (*Linear, error) {
	l := &Linear{name: p.scopeName("linear")}
	if err := positive(l.name, size{"the width of the input", in}, size{"the width of the output", out}); err != nil {
		return nil, err
	}
	var err error
	if l.Weight, err = p.New("weight", c.Init, out, in); err != nil {
		return nil, err
	}
	l.Weight.linear = true
	if !c.NoBias {
		l.Bias, err = p.New("bias", c.BiasInit.or(Zeros()), out)
	}
	return l, err
}

// Forward maps x of shape (…, In) to (…, Out).
func (l *Linear) Forward(b *Build, x *G.Node) (*G.Node, error) {
	return l.forward(b, x, ops.Identity)
}

// activated computes the layer and an activation: one op or, in the composed form, two.
func (l *Linear) activated(b *Build, x *G.Node, a Activation) (*G.Node, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if b.Composed {
		return chain(b, x, l, a)
	}
	return l.forward(b, x, ops.Activation(a))
}

// forward computes act(x·Wᵀ + b), with the product that the Build's Adapter adds before the activation.
func (l *Linear) forward(b *Build, x *G.Node, act ops.Activation) (*G.Node, error) {
	w, bias, err := l.bind(b, x)
	if err != nil {
		return nil, err
	}
	u, v, scale, err := b.lowRank(x, l.Weight) // (…, In) -> (…, Rank), (Out, Rank)
	if err != nil {
		return nil, err
	}
	if q := b.own(l.Weight).int8; q != nil {
		return ops.LinearInt8(b.Env(), x, w, q, bias, u, v, scale, act)
	}
	return ops.LinearSum(b.Env(), x, w, bias, u, v, scale, act)
}

// bind checks the layer's input x, and returns the nodes of its parameters. Without a bias, its node is nil. For int8
// weights, the node w holds their scales.
func (l *Linear) bind(b *Build, x *G.Node) (w, bias *G.Node, err error) {
	if err := checkInput(l.name, "the input", x, l.Weight.Value.Dtype(), l.Weight.Value.Shape()[1]); err != nil {
		return nil, nil, err
	}
	if w, err = b.bindWeights(x.Graph(), l.Weight); err != nil {
		return nil, nil, err
	}
	bias, err = b.Bind(x.Graph(), l.Bias)
	return w, bias, err
}
