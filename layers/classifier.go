package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
)

// SequenceClassifier classifies whole sequences. It makes one vector of an encoder's states: the mean over all valid
// positions, or the state of the first or the last one. A linear head, after a Transform if there is one, maps this
// vector to logits. Make one with NewSequenceClassifier.
//
// To classify every position instead, as in tagging, use an Encoder with Outputs.
type SequenceClassifier struct {
	Encoder   *Encoder   // without a head
	Transform *Transform // before the head; nil for none
	Head      *Linear    // (Outputs, Dim)

	pooling Pooling
	pad     *int
	softcap float64
	factor  float64 // HeadScale
}

// SequenceClassifierConfig describes a SequenceClassifier.
type SequenceClassifierConfig struct {
	Model ModelConfig `json:"model"` // the encoder and the head: Outputs is the number of classes, and Transform may be BERT's pooler

	Pooling Pooling `json:"pooling,omitzero"` // how the states become one vector; their mean if zero

	// Pad is an id that LastPooling passes over at the end of a sequence, also within the mask's KeyLengths: it pools
	// the last other id or, if there is none, the first. nil means none. Published decoders need it, whose padding may
	// also be the token that ends a text.
	Pad *int `json:"pad,omitzero"`
}

// UnmarshalJSON replaces the configuration with the one in data. It returns an error if data has an unknown field or
// position scheme.
func (c *SequenceClassifierConfig) UnmarshalJSON(data []byte) error {
	type plain SequenceClassifierConfig
	var fields plain
	if err := choices.Decode(data, &fields); err != nil {
		return fmt.Errorf("a sequence classifier's configuration: %w", err)
	}
	*c = SequenceClassifierConfig(fields)
	return nil
}

// NewSequenceClassifier makes a SequenceClassifier with the scopes encoder, transform and head.
func NewSequenceClassifier(p *Params, c SequenceClassifierConfig) (*SequenceClassifier, error) {
	name := p.scopeName("sequence classifier")
	if err := positive(name, size{"Outputs", c.Model.Outputs}); err != nil {
		return nil, err
	}
	if c.Model.Tied {
		return nil, fmt.Errorf("%s: Tied must be false, because the head chooses classes, not tokens", name)
	}
	if err := c.Model.checkHead(name); err != nil {
		return nil, err
	}
	if err := c.Pooling.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if c.Pad != nil && c.Pooling != LastPooling {
		return nil, fmt.Errorf("%s: Pad needs the pooling %v, got %v", name, LastPooling, c.Pooling)
	}
	s := &SequenceClassifier{pooling: c.Pooling, pad: c.Pad, softcap: c.Model.LogitSoftcap, factor: c.Model.HeadScale}
	encoder := c.Model
	encoder.Outputs, encoder.Transform, encoder.LogitSoftcap, encoder.HeadScale = 0, nil, 0, 0
	var err error
	if s.Encoder, err = NewEncoder(p.Scope("encoder"), encoder); err != nil {
		return nil, err
	}
	p = p.withInit(c.Model.Init)
	if s.Transform, err = newTransform(p.Scope("transform"), c.Model.Dim, c.Model.Dim, c.Model.Transform, c.Model.Block.Norm); err != nil {
		return nil, err
	}
	s.Head, err = NewLinear(p.Scope("head"), c.Model.Dim, c.Model.Outputs, LinearConfig{NoBias: c.Model.NoBias})
	return s, err
}

// Forward maps ids of shape (B, T) and dtype tensor.Int to logits of shape (B, Outputs). Without a batch axis, ids (T)
// give (1, Outputs). Like an Encoder, it also accepts embeddings. For padded sequences, set the mask's KeyLengths to
// the lengths of the sequences: attention and pooling then ignore the positions after the end. The other parts of the
// mask affect only attention. The logits of a sequence of length 0 are those of a vector of zeros: without a Transform,
// the head's bias. Embeddings have no ids, so Pad doesn't count.
func (s *SequenceClassifier) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := s.Features(b, x, m)
	if err != nil {
		return nil, err
	}
	return logits(b, x, s.Head, s.softcap)
}

// Features is like Forward, but leaves out the head: it returns the head's input, of shape (B, Dim).
func (s *SequenceClassifier) Features(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	states, err := s.Encoder.Forward(b, x, m) // (B, T) or (B, T, D) -> (B, T, D)
	lengths := m.KeyLengths
	if err == nil && s.pad != nil && x.Dtype() == tensor.Int {
		lengths, err = ops.Unpadded(b.Env(), x, lengths, *s.pad) // (B, T) -> (B)
	}
	if err == nil {
		x, err = Pool(b, states, lengths, s.pooling) // -> (B, D)
	}
	if err != nil {
		return nil, err
	}
	return headInput(b, x, s.Transform, s.factor)
}
