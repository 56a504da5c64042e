package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// A Norm normalises the last axis: a LayerNorm or an RMSNorm.
type Norm interface {
	Forward(b *Build, x *G.Node) (*G.Node, error)
}

// newNorm makes an RMSNorm or a LayerNorm with its defaults.
func newNorm(p *Params, c BlockConfig) (Norm, error) {
	if c.RMSNorm {
		return NewRMSNorm(p, RMSNormConfig{Dim: c.Dim, Eps: c.NormEps})
	}
	return NewLayerNorm(p, LayerNormConfig{Dim: c.Dim, Eps: c.NormEps, NoBias: c.NoBias})
}

// LayerNorm normalises the last axis to mean 0 and variance 1, then scales and shifts it by what it learns:
// y = (x − mean)/√(variance + Eps)·γ + β (Ba, Kiros and Hinton, 2016).
type LayerNorm struct {
	Weight *Param // γ, (Dim)
	Bias   *Param // β, (Dim); nil for none

	eps  float64
	name string
}

// LayerNormConfig describes a LayerNorm.
type LayerNormConfig struct {
	Dim    int
	Eps    float64 // 1e-5 if 0
	NoBias bool    // leave out β
}

// NewLayerNorm makes a LayerNorm with the parameters "weight", of ones, and, unless NoBias, "bias", of zeros.
func NewLayerNorm(p *Params, c LayerNormConfig) (*LayerNorm, error) {
	l := &LayerNorm{eps: c.Eps, name: p.scopeName("layer norm")}
	if err := positive(l.name, size{"Dim", c.Dim}); err != nil {
		return nil, err
	}
	if l.eps == 0 {
		l.eps = 1e-5
	}
	if !(l.eps > 0) {
		return nil, fmt.Errorf("%s: Eps must be above 0, got %v", l.name, c.Eps)
	}
	var err error
	if l.Weight, err = p.New("weight", Ones, c.Dim); err != nil {
		return nil, err
	}
	if !c.NoBias {
		l.Bias, err = p.New("bias", Zeros, c.Dim)
	}
	return l, err
}

// Forward normalises x of shape (…, Dim).
func (l *LayerNorm) Forward(b *Build, x *G.Node) (*G.Node, error) {
	if err := checkInput(l.name, "the input", x, l.Weight.Value.Dtype(), l.Weight.Value.Shape()[0]); err != nil {
		return nil, err
	}
	gamma, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	var beta *G.Node
	if l.Bias != nil {
		if beta, err = b.Bind(x.Graph(), l.Bias); err != nil {
			return nil, err
		}
	}
	return ops.LayerNorm(b.env(), x, gamma, beta, l.eps)
}

// RMSNorm divides the last axis by its root mean square, then scales it by what it learns: y = x/√(mean(x²) + Eps)·γ
// (Zhang and Sennrich, 2019). It is LayerNorm without the mean and without β.
type RMSNorm struct {
	Weight *Param // γ, (Dim)

	eps  float64
	name string
}

// RMSNormConfig describes an RMSNorm.
type RMSNormConfig struct {
	Dim int

	// Eps keeps rows of zeros from being divided by zero; 1e-6 if 0, as in T5 and Llama. (PyTorch's nn.RMSNorm takes the
	// dtype's machine epsilon unless told otherwise: 1.2e-7 for float32, 2.2e-16 for float64.)
	Eps float64
}

// NewRMSNorm makes an RMSNorm with the parameter "weight", of ones.
func NewRMSNorm(p *Params, c RMSNormConfig) (*RMSNorm, error) {
	l := &RMSNorm{eps: c.Eps, name: p.scopeName("rms norm")}
	if err := positive(l.name, size{"Dim", c.Dim}); err != nil {
		return nil, err
	}
	if l.eps == 0 {
		l.eps = 1e-6
	}
	if !(l.eps > 0) {
		return nil, fmt.Errorf("%s: Eps must be above 0, got %v", l.name, c.Eps)
	}
	var err error
	l.Weight, err = p.New("weight", Ones, c.Dim)
	return l, err
}

// Forward normalises x of shape (…, Dim).
func (l *RMSNorm) Forward(b *Build, x *G.Node) (*G.Node, error) { return l.ForwardHeads(b, x, 1) }

// ForwardHeads normalises each head of x, of shape (…, heads·Dim) with the heads side by side, on its own and with the
// same weight: as in attention that normalises its queries and keys (Henry et al., 2020; Dehghani et al., 2023).
func (l *RMSNorm) ForwardHeads(b *Build, x *G.Node, heads int) (*G.Node, error) {
	if err := positive(l.name, size{"the number of heads", heads}); err != nil {
		return nil, err
	}
	if err := checkInput(l.name, "the input", x, l.Weight.Value.Dtype(), heads*l.Weight.Value.Shape()[0]); err != nil {
		return nil, err
	}
	gamma, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	return ops.RMSNorm(b.env(), x, gamma, l.eps)
}
