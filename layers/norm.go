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

// A Norm normalises the last axis, then multiplies by a learned scale γ. Make one with NewNorm. There are two kinds:
//
//   - "layer" is LayerNorm, y = (x − mean)/√(variance + Eps)·γ + β, with mean 0 and variance 1 before γ and a learned
//     shift β (Ba, Kiros and Hinton, 2016).
//   - "rms" is RMSNorm, y = x/√(mean(x²) + Eps)·γ (Zhang and Sennrich, 2019). It doesn't subtract the mean.
type Norm struct {
	Weight *Param // γ, (Dim)
	Bias   *Param // β, (Dim); nil for none

	rms  bool
	eps  float64
	name string
}

// NormConfig describes a Norm.
type NormConfig struct {
	Kind string `json:"kind,omitzero"` // "layer" or "rms"; layer if empty
	// Eps prevents a division by zero. 0 means 1e-5 for the kind layer, and 1e-6 for the kind rms, as in T5 and Llama.
	// (The default of PyTorch's nn.RMSNorm is the dtype's machine epsilon: 1.2e-7 for float32, 2.2e-16 for float64.)
	Eps float64 `json:"eps,omitzero"`

	NoBias bool `json:"no_bias,omitzero"` // leave out β of the kind layer; the kind rms never has β
}

// norms lists the kinds of norm, the default first. The value is the default of Eps.
var norms = choices.Table[float64]{
	{Name: "layer", About: "mean 0 and variance 1, then a learned scale and shift (LayerNorm)", Value: 1e-5},
	{Name: "rms", About: "division by the root mean square, then a learned scale (RMSNorm)", Value: 1e-6},
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

// NewNorm makes a Norm for vectors of width dim. Its parameters are "weight", set to ones, and, for the kind layer
// unless NoBias, "bias", set to zeros.
func NewNorm(p *Params, dim int, c NormConfig) (*Norm, error) {
	kind := cmp.Or(c.Kind, norms[0].Name)
	eps, ok := norms.Get(kind)
	if !ok {
		return nil, fmt.Errorf("%s: %w", p.scopeName("norm"), c.unknown())
	}
	n := &Norm{rms: kind == "rms", eps: cmp.Or(c.Eps, eps), name: p.scopeName(kind + " norm")}
	if !(n.eps >= 1e-30 && n.eps <= ops.Largest) { // the lower limit keeps it above 0 in float32
		return nil, fmt.Errorf("%s: Eps must be from 1e-30 to %v, got %v", n.name, ops.Largest, n.eps)
	}
	err := positive(n.name, size{"Dim", dim})
	if err != nil {
		return nil, err
	}
	if n.Weight, err = p.New("weight", Ones(), dim); err == nil && !n.rms && !c.NoBias {
		n.Bias, err = p.New("bias", Zeros(), dim)
	}
	return n, err
}

// Forward normalises x of shape (…, Dim). A nil Norm returns x.
func (n *Norm) Forward(b *Build, x *G.Node) (*G.Node, error) { return n.forwardHeads(b, x, 1) }

// forwardHeads normalises each head of x separately, with the same weight. x has shape (…, heads·Dim), with the heads
// side by side; with more than one head, the kind must be rms. Attention with QKNorm uses it (Henry et al., 2020;
// Dehghani et al., 2023).
func (n *Norm) forwardHeads(b *Build, x *G.Node, heads int) (*G.Node, error) {
	if n == nil {
		return x, nil
	}
	if err := checkInput(n.name, "the input", x, n.Weight.Value.Dtype(), heads*n.Weight.Value.Shape()[0]); err != nil {
		return nil, err
	}
	gamma, err := b.Bind(x.Graph(), n.Weight)
	if err != nil {
		return nil, err
	}
	if n.rms {
		return ops.RMSNorm(b.Env(), x, gamma, n.eps)
	}
	beta, err := b.Bind(x.Graph(), n.Bias)
	if err != nil {
		return nil, err
	}
	return ops.LayerNorm(b.Env(), x, gamma, beta, n.eps)
}
