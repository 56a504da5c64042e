package layers

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
)

// SequenceClassifier classifies whole sequences. It takes the mean of an encoder's states over all valid positions, or
// only the state of the first position (Devlin et al., 2018). A linear head maps this vector to logits. Make one with
// NewSequenceClassifier.
//
// To classify every position instead, as in tagging, use an Encoder with Outputs.
type SequenceClassifier struct {
	Encoder *Encoder // without a head
	Head    *Linear  // (Outputs, Dim)

	positions int // largest number of positions in the mean
}

// SequenceClassifierConfig describes a SequenceClassifier.
type SequenceClassifierConfig struct {
	Model ModelConfig `json:"model"` // the encoder; Outputs is the number of classes

	// First uses the state of the first position instead of the mean. The first token of the data may be a special one.
	First bool `json:"first,omitzero"`
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

// NewSequenceClassifier makes a SequenceClassifier with the scopes encoder and head.
func NewSequenceClassifier(p *Params, c SequenceClassifierConfig) (*SequenceClassifier, error) {
	name := p.scopeName("sequence classifier")
	if err := positive(name, size{"Outputs", c.Model.Outputs}); err != nil {
		return nil, err
	}
	if c.Model.Tied {
		return nil, fmt.Errorf("%s: Tied must be false, because the head chooses classes, not tokens", name)
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

// Forward maps ids of shape (B, T) and dtype tensor.Int to logits of shape (B, Outputs). Without a batch axis, ids (T)
// give (1, Outputs). Like an Encoder, it also accepts embeddings. For padded sequences, set the mask's KeyLengths to
// the lengths of the sequences: attention and mean then ignore the positions after the end. The other parts of the mask
// affect only attention. The logits of a sequence of length 0 are the head's bias.
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
