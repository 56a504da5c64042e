package layers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
)

// EncoderDecoder reads a source sequence and writes a target sequence (Vaswani et al., 2017). In the encoder, every
// position of the source attends to the whole source. In the decoder, every position of the target attends to itself,
// to earlier target positions and to the encoder's output, and predicts the next token. Make one with
// NewEncoderDecoder.
type EncoderDecoder struct {
	Encoder *Encoder // without a head
	Decoder *Decoder // its blocks attend to the encoder's output; call Decode instead of its Forward

	name string
}

// EncoderDecoderConfig describes an EncoderDecoder. Model describes both the encoder and the decoder. The other fields
// change the decoder; Shared also changes the encoder's embeddings.
type EncoderDecoderConfig struct {
	Model ModelConfig `json:"model"` // the fields of the head, such as Outputs and Transform, apply only to the decoder

	TargetVocab   int `json:"target_vocab,omitzero"`   // number of different target tokens, V; Model.Vocab if 0
	DecoderLayers int `json:"decoder_layers,omitzero"` // number of decoder blocks; Model.Layers if 0

	TargetPositions PositionsConfig `json:"target_positions,omitzero"` // positions of the target; Model.Positions if nil

	// Shared uses one table for the source embeddings and the target embeddings and, if Model is Tied, for the head's
	// weight (Vaswani et al., 2017, section 3.4). Source and target must have the same vocabulary.
	Shared bool `json:"shared,omitzero"`
}

// MarshalJSON returns the configuration as JSON. See ModelConfig.MarshalJSON for errors.
func (c EncoderDecoderConfig) MarshalJSON() ([]byte, error) {
	type plain EncoderDecoderConfig
	return json.Marshal(struct {
		plain
		TargetPositions positionsJSON `json:"target_positions,omitzero"` // shadows plain's field
	}{plain(c), positionsJSON{c.TargetPositions}})
}

// UnmarshalJSON replaces the configuration with the one in data. It returns an error if data has an unknown field or
// position scheme.
func (c *EncoderDecoderConfig) UnmarshalJSON(data []byte) error {
	type plain EncoderDecoderConfig
	var fields struct {
		plain
		TargetPositions positionsJSON `json:"target_positions"`
	}
	if err := choices.Decode(data, &fields); err != nil {
		return fmt.Errorf("an encoder-decoder's configuration: %w", err)
	}
	*c = EncoderDecoderConfig(fields.plain)
	c.TargetPositions = fields.TargetPositions.PositionsConfig
	return nil
}

// NewEncoderDecoder makes an EncoderDecoder with an Encoder in the scope encoder and a Decoder in the scope decoder.
// With Shared, the shared table is the parameter embedding.weight.
func NewEncoderDecoder(p *Params, c EncoderDecoderConfig) (*EncoderDecoder, error) {
	m := &EncoderDecoder{name: p.scopeName("encoder-decoder")}
	if c.Model.Segments != 0 {
		return nil, fmt.Errorf("%s: Segments must be 0, because the Build's Segments describe one sequence, got %d", m.name, c.Model.Segments)
	}
	source, target := c.Model, c.Model
	source.Outputs, source.Tied = 0, false
	source.TiedBias, source.Transform, source.LogitSoftcap, source.HeadScale = false, nil, 0, 0
	if source.Vocab == 0 { // the scale is only for the target's tokens
		source.EmbeddingScale = 0
	}
	target.Vocab = cmp.Or(c.TargetVocab, c.Model.Vocab)
	target.Layers = cmp.Or(c.DecoderLayers, c.Model.Layers)
	if c.TargetPositions != nil {
		target.Positions = c.TargetPositions
	}
	var table *Param
	var err error
	if c.Shared {
		if vocab := c.Model.Vocab; target.Vocab != vocab {
			return nil, fmt.Errorf("%s: with Shared, TargetVocab must be 0 or equal to Vocab (%d), got %d", m.name, vocab, target.Vocab)
		}
		if err := positive(m.name, size{"Vocab", target.Vocab}, size{"the width of embeddings", target.EmbeddingWidth()}); err != nil {
			return nil, err
		}
		if table, err = p.Scope("embedding").New("weight", target.tableInit(), target.Vocab, target.EmbeddingWidth()); err != nil {
			return nil, err
		}
		if source.EmbeddingScale == 0 && target.Tied {
			source.EmbeddingScale = math.Sqrt(float64(target.EmbeddingWidth()))
		}
	}
	if m.Encoder, err = newEncoder(p.Scope("encoder"), source, table); err != nil {
		return nil, err
	}
	m.Decoder, err = newDecoder(p.Scope("decoder"), target, table, NewCrossDecoderBlock)
	return m, err
}

// Forward maps source ids of shape (B, S) and target ids of shape (B, T), both of dtype tensor.Int, to logits of shape
// (B, T, V): the logits at position t predict target token t+1. Without a batch axis, (S) and (T) give (T, V).
//
// The argument mask applies only to the source, and must not be Causal. The decoder is always causal, so padding after
// a target needs no mask. For padded sources, set the mask's KeyLengths to the lengths of the sources. Masked source
// positions affect neither the logits nor a gradient. An Allow or a Bias must broadcast to the scores of the source's
// self-attention, (B, H, S, S), and to the scores of the cross-attention, (B, H, T, S).
func (m *EncoderDecoder) Forward(b *Build, source, target *G.Node, mask Mask) (*G.Node, error) {
	if mask.Causal {
		return nil, fmt.Errorf("%s: the source's mask can't be Causal, because every target position sees the whole source; the decoder is always causal", m.name)
	}
	memory, err := m.Encode(b, source, mask)
	if err != nil {
		return nil, err
	}
	return m.Decode(b, target, memory, Mask{}, mask)
}

// Encode is the first half of Forward: it maps source ids of shape (B, S) to the encoder's output, (B, S, Dim). To
// generate a target token by token, encode the source once, and use the value of the encoder's output as an input of
// another graph, built with Decode.
func (m *EncoderDecoder) Encode(b *Build, source *G.Node, mask Mask) (memory *G.Node, err error) {
	if err := m.noPositions(b); err != nil {
		return nil, err
	}
	return m.Encoder.Forward(b, source, mask)
}

// Decode is the second half of Forward: it maps target ids of shape (B, T) and the encoder's output, memory, to logits
// of shape (B, T, V). The memory has shape (B, S, Dim) and the parameters' dtype. The argument self is the mask of the
// decoder's self-attention, which is always causal. The argument source is the mask of the cross-attention.
//
// With a Cache in the Build, the ids are the new tokens of the Cache's targets. The first graph must have the memory as
// an input. In later graphs, memory may be nil, because the Cache holds its keys and values.
func (m *EncoderDecoder) Decode(b *Build, target, memory *G.Node, self, source Mask) (*G.Node, error) {
	x, err := m.decode(b, target, memory, self, source)
	if err != nil {
		return nil, err
	}
	return m.Decoder.finish(b, x)
}

// Next is like Decode, but applies the norm and the head only to the last new token of each target. It returns the
// logits for the next token, of shape (B, V). The row of a target without new tokens is meaningless. Next needs a Cache
// in the Build.
func (m *EncoderDecoder) Next(b *Build, target, memory *G.Node, self, source Mask) (*G.Node, error) {
	x, err := m.decode(b, target, memory, self, source)
	if err != nil {
		return nil, err
	}
	return m.Decoder.next(b, x)
}

func (m *EncoderDecoder) decode(b *Build, target, memory *G.Node, self, source Mask) (*G.Node, error) {
	if err := m.noPositions(b); err != nil {
		return nil, err
	}
	return m.Decoder.decode(b, target, memory, self, source)
}

// noPositions returns an error if the Build has Positions. They describe one sequence, but an EncoderDecoder has two.
func (m *EncoderDecoder) noPositions(b *Build) error {
	if b.Positions != nil {
		return fmt.Errorf("%s: the Build can't have Positions, because there are two sequences; positions in both count from 0", m.name)
	}
	return nil
}
