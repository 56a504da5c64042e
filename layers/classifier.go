package layers

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/internal/ops"
)

// SequenceClassifier chooses a class for a whole sequence: the mean of an encoder's states over the valid positions, or
// the state of the first one (Devlin et al., 2018), and a linear head.
//
// To choose a class for every position instead, as in tagging, an Encoder with Outputs is all it takes. Make one with
// NewSequenceClassifier.
type SequenceClassifier struct {
	Encoder *Encoder // without a head
	Head    *Linear  // (Outputs, Dim)

	positions int // how many count, at most
}

// SequenceClassifierConfig describes a SequenceClassifier.
type SequenceClassifierConfig struct {
	Model ModelConfig `json:"model"` // the encoder; Outputs is the number of classes of a sequence

	// First classifies by the state of the first position, which a token of its own may have been put at, instead of by
	// the mean of all.
	First bool `json:"first,omitzero"`
}

// UnmarshalJSON sets the configuration to what JSON says. An unknown field or position scheme is an error.
func (c *SequenceClassifierConfig) UnmarshalJSON(data []byte) error {
	type plain SequenceClassifierConfig
	var fields plain
	if err := kinds.Decode(data, &fields); err != nil {
		return fmt.Errorf("a sequence classifier's configuration: %w", err)
	}
	*c = SequenceClassifierConfig(fields)
	return nil
}

// NewSequenceClassifier makes a SequenceClassifier with the scopes encoder and head.
func NewSequenceClassifier(p *Params, c SequenceClassifierConfig) (*SequenceClassifier, error) {
	name := p.scopeName("sequence classifier")
	if err := positive(name, size{"Outputs", c.Model.Outputs}); err != nil {
		return nil, err
	}
	if c.Model.Tied {
		return nil, fmt.Errorf("%s: the head chooses classes, not tokens: it can't be Tied to the embeddings", name)
	}
	s := &SequenceClassifier{positions: math.MaxInt}
	if c.First {
		s.positions = 1
	}
	encoder := c.Model
	encoder.Outputs = 0
	var err error
	if s.Encoder, err = NewEncoder(p.Scope("encoder"), encoder); err != nil {
		return nil, err
	}
	s.Head, err = NewLinear(p.withInit(c.Model.Init).Scope("head"), c.Model.Dim, c.Model.Outputs, LinearConfig{NoBias: c.Model.NoBias})
	return s, err
}

// Forward maps ids of shape (B, T), of dtype tensor.Int, to logits of shape (B, Outputs); without a batch axis, (T)
// gives (1, Outputs). In place of ids it takes embeddings, as an Encoder does. Pass the lengths of padded sequences as
// the mask's KeyLengths: positions past them count nowhere. The rest of the mask limits attention alone. A sequence of
// length 0 has the head's bias for logits.
func (s *SequenceClassifier) Forward(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	x, err := s.Encoder.Forward(b, x, m) // (B, T) or (B, T, D) -> (B, T, D)
	if err != nil {
		return nil, err
	}
	if x, err = ops.Pool(b.Env(), x, m.KeyLengths, s.positions); err != nil { // -> (B, D)
		return nil, err
	}
	return s.Head.Forward(b, x)
}
