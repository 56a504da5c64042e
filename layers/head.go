package layers

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Transform is a hidden layer before a head: y = norm(activation(x·Wᵀ + b)), with W of shape (Dim, Dim), or
// (E, Dim) before the head of a model with a Projection to width E. BERT has one
// before the head that predicts masked tokens and, without the norm, before its classifier (Devlin et al., 2018).
type Transform struct {
	Linear     *Linear
	Activation Activation
	Norm       *Norm // nil for none
}

// TransformConfig describes a Transform.
type TransformConfig struct {
	Activation Activation `json:"activation,omitzero"`
	NoBias     bool       `json:"no_bias,omitzero"` // leave out b
	Norm       bool       `json:"norm,omitzero"`    // add a norm, described by the model's Block.Norm
}

// newTransform makes a Transform from width in to width out with the scopes linear and, with a norm, norm. If c is nil,
// it returns nil.
func newTransform(p *Params, in, out int, c *TransformConfig, norm NormConfig) (*Transform, error) {
	if c == nil {
		return nil, nil
	}
	t := &Transform{Activation: c.Activation}
	err := c.Activation.check()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.scopeName("transform"), err)
	}
	if t.Linear, err = NewLinear(p.Scope("linear"), in, out, LinearConfig{NoBias: c.NoBias}); err == nil && c.Norm {
		t.Norm, err = NewNorm(p.Scope("norm"), out, norm)
	}
	return t, err
}

// Forward maps x of shape (…, Dim) to (…, Dim) or (…, E). A nil Transform returns x.
func (t *Transform) Forward(b *Build, x *G.Node) (*G.Node, error) {
	if t == nil {
		return x, nil
	}
	x, err := t.Linear.activated(b, x, t.Activation)
	if err != nil {
		return nil, err
	}
	return t.Norm.Forward(b, x)
}

// addHead makes the head and the Transform before it, if the model has them.
func (t *Trunk) addHead(p *Params, c ModelConfig) (err error) {
	if t.Transform, err = newTransform(p.Scope("transform"), c.Dim, c.EmbeddingWidth(), c.Transform, c.Block.Norm); err != nil {
		return err
	}
	width := c.Dim
	if c.Transform != nil {
		width = c.EmbeddingWidth()
	}
	t.softcap, t.factor, p = c.LogitSoftcap, c.HeadScale, p.Scope("head")
	switch {
	case c.Tied:
		t.Head = &Linear{Weight: t.Embedding.Weight, name: p.scopeName("linear")}
		t.Head.Weight.head = true
		if c.TiedBias {
			t.Head.Bias, err = p.New("bias", Zeros(), c.Vocab)
		}
	case c.Outputs > 0:
		t.Head, err = NewLinear(p, width, c.Outputs, LinearConfig{NoBias: c.NoBias})
	}
	return err
}

// checkHead checks the fields that addHead uses.
func (c ModelConfig) checkHead(name string) error {
	switch x := c.LogitSoftcap; {
	case c.Outputs < 0:
		return fmt.Errorf("%s: Outputs can't be negative, got %d", name, c.Outputs)
	case c.Tied && c.Outputs != 0 && c.Outputs != c.Vocab:
		return fmt.Errorf("%s: a Tied model has one output per token: Outputs must be 0 or %d, got %d", name, c.Vocab, c.Outputs)
	case c.TiedBias && !c.Tied:
		return fmt.Errorf("%s: TiedBias is for a Tied model: set Tied, or choose a head with or without a bias with NoBias", name)
	case x != 0 && !(x >= 1e-30 && x <= ops.Largest): // the lower limit keeps it above 0 in float32
		return fmt.Errorf("%s: LogitSoftcap must be from 1e-30 to %v, or 0 for no cap, got %v", name, ops.Largest, x)
	case c.Tied && c.Transform == nil && c.EmbeddingWidth() != c.Dim:
		return fmt.Errorf("%s: a Tied model with a Projection needs a Transform, which maps states of width %d to the embeddings' width, %d", name, c.Dim, c.EmbeddingWidth())
	case !(math.Abs(c.HeadScale) <= ops.Largest):
		return fmt.Errorf("%s: HeadScale must be finite and at most %v in size, got %v", name, ops.Largest, c.HeadScale)
	case (c.Transform != nil || x != 0 || c.HeadScale != 0) && c.Outputs == 0 && !c.Tied:
		return fmt.Errorf("%s: Transform, LogitSoftcap and HeadScale are for a head: set Outputs or Tied", name)
	}
	return nil
}

// CrossEntropy returns the HeadCrossEntropy of the Trunk's head, with its Transform, HeadScale and LogitSoftcap. The
// states are a result of the method States. If the Trunk has no head, CrossEntropy returns an error.
func (t *Trunk) CrossEntropy(b *Build, states, targets *G.Node, o CrossEntropyOptions) (loss Loss, predicted *G.Node, err error) {
	if t.Head == nil {
		return Loss{}, nil, fmt.Errorf("%s: the cross-entropy needs a head: set Outputs or Tied in its ModelConfig", t.name)
	}
	if states, err = headInput(b, states, t.Transform, t.factor); err != nil {
		return Loss{}, nil, err
	}
	return HeadCrossEntropy(b, states, t.Head, t.softcap, targets, o)
}

// finish applies the norm and the head that follow the blocks.
func (t *Trunk) finish(b *Build, x *G.Node) (*G.Node, error) {
	x, err := t.Norm.Forward(b, x)
	if err != nil || t.Head == nil {
		return x, err
	}
	if x, err = headInput(b, x, t.Transform, t.factor); err != nil {
		return nil, err
	}
	return logits(b, x, t.Head, t.softcap)
}

// headInput maps states to the input of a head, with a Transform and a HeadScale.
func headInput(b *Build, x *G.Node, t *Transform, scale float64) (*G.Node, error) {
	x, err := t.Forward(b, x)
	if err != nil {
		return nil, err
	}
	return scaled(b, x, scale)
}

// logits applies a head: (…, Dim) -> (…, Outputs).
func logits(b *Build, x *G.Node, head *Linear, softcap float64) (*G.Node, error) {
	x, err := head.Forward(b, x)
	if err != nil || softcap == 0 {
		return x, err
	}
	return ops.Softcap(b.Env(), x, softcap)
}
