package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

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
	NoBias bool
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
	return ops.LayerNorm(x, gamma, beta, l.eps)
}
