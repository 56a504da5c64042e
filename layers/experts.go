package layers

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// ExpertsConfig describes a mixture of experts in place of a feed-forward layer (Shazeer et al., 2017; Fedus et al.,
// Switch Transformers, 2021; Jiang et al., Mixtral, 2024). The FeedForwardConfig around it describes each expert:
// Hidden is the width of its hidden layer. A token's output is the sum of the outputs of Top experts, each multiplied
// by its share.
type ExpertsConfig struct {
	Count int `json:"count,omitzero"` // number of experts, E
	Top   int `json:"top,omitzero"`   // number of experts for each token; 2 if 0, or 1 if there is only one expert

	// The router's logits are router(x), one for each expert. The score of an expert is the softmax of the logits or,
	// with Sigmoid, σ(logit). The shares of the Top experts with the largest scores are their scores, divided by their
	// sum unless Unnormalized, times Scale.
	Sigmoid      bool    `json:"sigmoid,omitzero"`
	Unnormalized bool    `json:"unnormalized,omitzero"`
	Scale        float64 `json:"scale,omitzero"` // 1 if 0

	// With Groups above 0, the experts are divided into equal groups, and a token's experts are from its TopGroups best
	// groups. The score of a group is its largest score or, with Sigmoid, the sum of its two largest (DeepSeek-V2 and
	// V3, 2024).
	Groups    int `json:"groups,omitzero"`
	TopGroups int `json:"top_groups,omitzero"` // at least 1 if there are Groups

	// ChoiceBias adds the parameter choice, (E), to the scores when experts are chosen, but not in their shares. It is
	// Frozen: a program that balances experts without a loss changes it between steps, by the Build's Routings
	// (Wang et al., 2024; DeepSeek-V3).
	ChoiceBias bool `json:"choice_bias,omitzero"`
	RouterBias bool `json:"router_bias,omitzero"` // add a bias to the router's logits

	// Shared is the width of a feed-forward layer for all tokens, whose output is added; 0 for none.
	Shared int `json:"shared,omitzero"`

	// Limit, if not 0, replaces act(gate)∘up by (up + 1)∘gate∘σ(1.702·gate), where the gate is at most Limit, and up
	// from −Limit to Limit (gpt-oss, 2025). The experts must be gated, with the activation SiLU.
	Limit float64 `json:"limit,omitzero"`

	// Balance is the weight of a loss that is small if all experts get equally many tokens: see Build.Balanced. 0 means
	// that there is none.
	Balance float64 `json:"balance,omitzero"`
}

// Experts is a mixture of experts. Make one with NewFeedForward.
type Experts struct {
	Router         *Linear // (E, Dim)
	Choice         *Param  // (E); nil without ChoiceBias
	Gate, Up, Down *Param  // (E, Hidden, Dim), nil unless gated; (E, Hidden, Dim); (E, Dim, Hidden)

	GateBias, UpBias, DownBias *Param // (E·Hidden), (E·Hidden) and (E·Dim); nil without biases

	shared *FeedForward // nil for none

	router  ops.Router
	options ops.ExpertsConfig // without nodes
	balance float64
	scope   string
}

// Sizes returns the width of all experts' hidden layers together, and of the layers that one token passes, for experts
// of width hidden. For a nil ExpertsConfig, both are hidden.
func (c *ExpertsConfig) Sizes(hidden int) (whole, active int) {
	if c == nil {
		return hidden, hidden
	}
	whole, active = memory.Product(max(c.Count, 0), hidden), memory.Product(cmp.Or(max(c.Top, 0), min(2, c.Count)), hidden)
	return whole + min(max(c.Shared, 0), math.MaxInt-whole), active + min(max(c.Shared, 0), math.MaxInt-active)
}

// newExperts makes Experts for vectors of width dim. Their parameters are router.weight, gate.weight (if Gated),
// up.weight, down.weight and, unless NoBias, gate.bias, up.bias and down.bias. The scope shared has the parameters of
// the shared layer.
func newExperts(p *Params, dim int, c FeedForwardConfig) (*Experts, error) {
	m := *c.Experts
	m.Top = cmp.Or(m.Top, min(2, m.Count))
	x := &Experts{
		router:  ops.Router{Experts: m.Count, Top: m.Top, Groups: m.Groups, TopGroups: m.TopGroups, Sigmoid: m.Sigmoid, Normalize: !m.Unnormalized, Scale: cmp.Or(m.Scale, 1)},
		options: ops.ExpertsConfig{Name: p.scopeName("experts"), Activation: ops.Activation(c.Activation), Limit: m.Limit, Dropout: c.Dropout},
		balance: m.Balance, scope: p.scope(),
	}
	name := x.options.Name
	if err := positive(name, size{"Count", m.Count}, size{"Top", m.Top}); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		what  string
		value float64
	}{{"Scale", m.Scale}, {"Limit", m.Limit}, {"Balance", m.Balance}} {
		if !(x.value >= 0 && x.value <= ops.Largest) {
			return nil, fmt.Errorf("%s: %s must be from 0 to %v, got %v", name, x.what, ops.Largest, x.value)
		}
	}
	switch {
	case m.Limit != 0 && (!c.Gated || c.Activation != SiLU):
		return nil, fmt.Errorf("%s: Limit needs gated experts with the activation silu, got gated %t and %v", name, c.Gated, c.Activation)
	case m.Shared < 0:
		return nil, fmt.Errorf("%s: Shared must be a width, or 0 for no shared layer, got %d", name, m.Shared)
	}
	if err := ops.CheckRouter(name, x.router); err != nil {
		return nil, err
	}
	var err error
	if x.Router, err = NewLinear(p.Scope("router"), dim, m.Count, LinearConfig{NoBias: !m.RouterBias, Init: c.Init}); err != nil {
		return nil, err
	}
	x.Router.Weight.linear = false // it is small: adapters and int8 weights leave it as it is
	for _, w := range []struct {
		weight, bias **Param
		name         string
		init         Init
		out, in      int
	}{
		{&x.Gate, &x.GateBias, "gate", c.Init, c.Hidden, dim},
		{&x.Up, &x.UpBias, "up", c.Init, c.Hidden, dim},
		{&x.Down, &x.DownBias, "down", c.OutputInit.or(c.Init), dim, c.Hidden},
	} {
		if w.name == "gate" && !c.Gated {
			continue
		}
		if *w.weight, err = p.Scope(w.name).New("weight", w.init, m.Count, w.out, w.in); err == nil && !c.NoBias {
			*w.bias, err = p.Scope(w.name).New("bias", Zeros(), memory.Product(m.Count, w.out))
		}
		if err != nil {
			return nil, err
		}
	}
	if m.ChoiceBias {
		if x.Choice, err = p.New("choice", Zeros(), m.Count); err != nil {
			return nil, err
		}
		x.Choice.Frozen = true
	}
	if m.Shared > 0 {
		c.Experts, c.Hidden = nil, m.Shared
		x.shared, err = NewFeedForward(p.Scope("shared"), dim, c)
	}
	return x, err
}

// Forward maps x of shape (…, Dim) to the same shape.
func (x *Experts) Forward(b *Build, in *G.Node) (*G.Node, error) {
	logits, err := x.Router.Forward(b, in) // (…, Dim) -> (…, E)
	if err != nil {
		return nil, err
	}
	choice, err := b.Bind(in.Graph(), x.Choice)
	if err != nil {
		return nil, err
	}
	ids, err := ops.Choose(b.Env(), logits, choice, x.router) // (…, E) -> (N, Top)
	if err != nil {
		return nil, err
	}
	shares, err := ops.Share(b.Env(), logits, ids, x.router)
	if err != nil {
		return nil, err
	}
	routing := Routing{Layer: x.scope, Chosen: ids, Shares: shares, weight: x.balance}
	if x.balance > 0 {
		if routing.Balance, err = ops.Balance(b.Env(), logits, ids, x.router); err != nil {
			return nil, err
		}
	}
	b.routings = append(b.routings, routing)
	o := x.options
	for _, p := range []struct {
		node  **G.Node
		param *Param
	}{{&o.Gate, x.Gate}, {&o.Up, x.Up}, {&o.Down, x.Down}, {&o.GateBias, x.GateBias}, {&o.UpBias, x.UpBias}, {&o.DownBias, x.DownBias}} {
		if *p.node, err = b.Bind(in.Graph(), p.param); err != nil {
			return nil, err
		}
	}
	y, err := ops.Experts(b.Env(), in, ids, shares, o)
	if err != nil || x.shared == nil {
		return y, err
	}
	shared, err := x.shared.Forward(b, in)
	if err != nil {
		return nil, err
	}
	return ops.Add(b.Env(), y, shared)
}
