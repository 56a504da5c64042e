package layers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/text"
)

// A Norm normalises the last axis. LayerNorm and RMSNorm are Norms.
type Norm interface {
	Forward(b *Build, x *G.Node) (*G.Node, error)
}

// NormConfig describes a LayerNorm or an RMSNorm.
type NormConfig struct {
	Kind string `json:"kind,omitzero"` // in a BlockConfig: "layer" for a LayerNorm or "rms" for an RMSNorm; layer if empty

	// Eps prevents a division by zero. 0 means 1e-5 for a LayerNorm, and 1e-6 for an RMSNorm, as in T5 and Llama. (The
	// default of PyTorch's nn.RMSNorm is the dtype's machine epsilon: 1.2e-7 for float32, 2.2e-16 for float64.)
	Eps float64 `json:"eps,omitzero"`

	NoBias bool `json:"no_bias,omitzero"` // leave out β in a LayerNorm; an RMSNorm never has β
}

// norms lists the kinds of norm, the default first.
var norms = choices.Table[func(p *Params, dim int, c NormConfig) (Norm, error)]{
	{Name: "layer", About: "mean 0 and variance 1, then a learned scale and shift (LayerNorm)", Value: func(p *Params, dim int, c NormConfig) (Norm, error) { return NewLayerNorm(p, dim, c) }},
	{Name: "rms", About: "division by the root mean square, then a learned scale (RMSNorm)", Value: func(p *Params, dim int, c NormConfig) (Norm, error) { return NewRMSNorm(p, dim, c) }},
}

var normChoice = choices.Choice{
	All:   norms.All(),
	Parse: func(text string) (any, error) { return parseNorm(text) },
	Text: func(v any) string {
		c := v.(NormConfig)
		c.Kind = cmp.Or(c.Kind, norms[0].Name)
		data, _ := json.Marshal(c)
		return choices.Text(data)
	},
}

// parseNorm parses a norm's kind, followed by fields of NormConfig with their JSON names, such as "rms,eps=1e-5". It
// returns an error if the kind or a field is unknown.
func parseNorm(text string) (NormConfig, error) {
	kind, _, _ := strings.Cut(text, ",")
	c := NormConfig{Kind: kind}
	if _, ok := norms.Get(kind); !ok {
		return NormConfig{}, c.unknown()
	}
	if err := choices.Set(&c, text[len(kind):]); err != nil {
		return NormConfig{}, fmt.Errorf("norm of kind %s: %w", kind, err)
	}
	return c, nil
}

func (c NormConfig) unknown() error {
	return fmt.Errorf("there is no norm of kind %.100q: use one of %s%s", c.Kind, norms, text.DidYouMean(c.Kind, norms.Names()))
}

// newNorm makes a norm of the configuration's Kind.
func newNorm(p *Params, dim int, c NormConfig) (Norm, error) {
	norm, ok := norms.Get(cmp.Or(c.Kind, norms[0].Name))
	if !ok {
		return nil, fmt.Errorf("%s: %w", p.scopeName("norm"), c.unknown())
	}
	return norm(p, dim, c)
}

// checkNorm checks the width and Eps of a norm. The lower limit keeps Eps above 0 in float32.
func checkNorm(layer string, dim int, eps float64) error {
	if !(eps >= 1e-30 && eps <= ops.Largest) {
		return fmt.Errorf("%s: Eps must be from 1e-30 to %v, got %v", layer, ops.Largest, eps)
	}
	return positive(layer, size{"Dim", dim})
}

// LayerNorm normalises the last axis to mean 0 and variance 1, then applies a learned scale and shift: y = (x −
// mean)/√(variance + Eps)·γ + β (Ba, Kiros and Hinton, 2016). Make one with NewLayerNorm.
type LayerNorm struct {
	Weight *Param // γ, (Dim)
	Bias   *Param // β, (Dim); nil for none

	eps  float64
	name string
}

// NewLayerNorm makes a LayerNorm for vectors of width dim; it ignores the configuration's Kind. Its parameters are
// "weight", set to ones, and, unless NoBias, "bias", set to zeros.
func NewLayerNorm(p *Params, dim int, c NormConfig) (*LayerNorm, error) {
	l := &LayerNorm{eps: cmp.Or(c.Eps, 1e-5), name: p.scopeName("layer norm")}
	err := checkNorm(l.name, dim, l.eps)
	if err != nil {
		return nil, err
	}
	if l.Weight, err = p.New("weight", Ones(), dim); err != nil {
		return nil, err
	}
	if !c.NoBias {
		l.Bias, err = p.New("bias", Zeros(), dim)
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
	beta, err := b.Bind(x.Graph(), l.Bias)
	if err != nil {
		return nil, err
	}
	return ops.LayerNorm(b.Env(), x, gamma, beta, l.eps)
}

// RMSNorm divides the last axis by its root mean square, then applies a learned scale: y = x/√(mean(x²) + Eps)·γ (Zhang
// and Sennrich, 2019). Unlike LayerNorm, it doesn't subtract the mean, and it has no β. Make one with NewRMSNorm.
type RMSNorm struct {
	Weight *Param // γ, (Dim)

	eps  float64
	name string
}

// NewRMSNorm makes an RMSNorm for vectors of width dim; it ignores the configuration's Kind. Its parameter is "weight",
// set to ones.
func NewRMSNorm(p *Params, dim int, c NormConfig) (*RMSNorm, error) {
	l := &RMSNorm{eps: cmp.Or(c.Eps, 1e-6), name: p.scopeName("rms norm")}
	err := checkNorm(l.name, dim, l.eps)
	if err != nil {
		return nil, err
	}
	l.Weight, err = p.New("weight", Ones(), dim)
	return l, err
}

// Forward normalises x of shape (…, Dim).
func (l *RMSNorm) Forward(b *Build, x *G.Node) (*G.Node, error) { return l.forwardHeads(b, x, 1) }

// forwardHeads normalises each head of x separately, with the same weight. x has shape (…, heads·Dim), with the heads
// side by side. Attention with QKNorm uses it (Henry et al., 2020; Dehghani et al., 2023).
func (l *RMSNorm) forwardHeads(b *Build, x *G.Node, heads int) (*G.Node, error) {
	if err := checkInput(l.name, "the input", x, l.Weight.Value.Dtype(), heads*l.Weight.Value.Shape()[0]); err != nil {
		return nil, err
	}
	gamma, err := b.Bind(x.Graph(), l.Weight)
	if err != nil {
		return nil, err
	}
	return ops.RMSNorm(b.Env(), x, gamma, l.eps)
}
