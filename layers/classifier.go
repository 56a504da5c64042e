package layers

import (
	"cmp"
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
	Decoder   *Decoder   // without a head; nil for none
	Transform *Transform // before the head; nil for none
	Head      *Linear    // (Outputs, Dim)

	pooling Pooling
	pad     *int
	start   int // the first id that the decoder reads
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

	Decoder *RereadConfig `json:"decoder,omitzero"` // a decoder whose states are pooled in place of the encoder's; nil for none
}

// A RereadConfig describes the decoder of a SequenceClassifier (Lewis et al., BART, 2020). It has the encoder's
// embeddings, and blocks like the encoder's, which also attend to the encoder's output. It reads the same ids, one
// place to the right: the last id is left out.
type RereadConfig struct {
	Layers int `json:"layers,omitzero"` // number of blocks; Model.Layers if 0
	Start  int `json:"start"`           // the first id that the decoder reads
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

// NewSequenceClassifier makes a SequenceClassifier with the scopes encoder, decoder, transform and head.
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
	if d := c.Decoder; d != nil {
		if s.Encoder.Embedding == nil || encoder.Segments > 0 {
			return nil, fmt.Errorf("%s: with a Decoder, the Model must have a Vocab and no Segments, got %d and %d", name, encoder.Vocab, encoder.Segments)
		}
		s.start, encoder.Layers = d.Start, cmp.Or(d.Layers, encoder.Layers)
		t, err := newTrunk(p.Scope("decoder"), "decoder", encoder, s.Encoder.Embedding.Weight, NewCrossDecoderBlock)
		if err != nil {
			return nil, err
		}
		s.Decoder = &Decoder{t}
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
	if err == nil && s.Decoder != nil {
		states, err = s.reread(b, x, states, m)
	}
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

// reread returns the decoder's states for ids and the encoder's output: (B, T), (B, T, D) -> (B, T, D).
func (s *SequenceClassifier) reread(b *Build, ids, memory *G.Node, m Mask) (*G.Node, error) {
	if ids.Dtype() != tensor.Int {
		return nil, fmt.Errorf("%s: a classifier with a decoder needs ids, because the decoder reads them too, got %v of shape %v", s.Decoder.name, ids.Dtype(), ids.Shape())
	}
	shifted, err := ops.Shift(b.Env(), ids, s.start)
	if err != nil {
		return nil, err
	}
	x, err := s.Decoder.decode(b, shifted, memory, Mask{}, m)
	if err != nil {
		return nil, err
	}
	return s.Decoder.Norm.Forward(b, x)
}
