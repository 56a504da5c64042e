package layers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kinds"
)

// EncoderDecoder reads one sequence and writes another (Vaswani et al., 2017): an encoder, in which every position of
// the source attends to the whole source, and a decoder, in which every position of the target attends to itself, to
// those before it and to the encoder's output, and predicts the token that follows. Make one with NewEncoderDecoder.
type EncoderDecoder struct {
	Encoder *Encoder // without a head
	Decoder *Decoder // its blocks attend to the encoder's output: apply it by Decode

	name string
}

// EncoderDecoderConfig describes an EncoderDecoder. Its Model is that of both stacks; what the target has of its own
// comes after.
type EncoderDecoderConfig struct {
	Model ModelConfig `json:"model"` // Outputs is that of the decoder alone

	TargetVocab   int `json:"target_vocab,omitzero"`   // number of different target tokens, V; Model.Vocab if 0
	DecoderLayers int `json:"decoder_layers,omitzero"` // number of decoder blocks; Model.Layers if 0

	TargetPositions PositionsConfig `json:"target_positions,omitzero"` // those of the target; Model.Positions if nil

	// Shared makes one table embed source and target tokens, and Tied, which it implies, be the head's weight too
	// (Vaswani et al., 2017, section 3.4). The two vocabularies must be one.
	Shared bool `json:"shared,omitzero"`
}

// MarshalJSON returns the configuration as JSON, as ModelConfig has it.
func (c EncoderDecoderConfig) MarshalJSON() ([]byte, error) {
	type plain EncoderDecoderConfig
	return json.Marshal(struct {
		plain
		TargetPositions positionsJSON `json:"target_positions,omitzero"` // takes the place of plain's
	}{plain(c), positionsJSON{c.TargetPositions}})
}

// UnmarshalJSON sets the configuration to what JSON says. An unknown field or position scheme is an error.
func (c *EncoderDecoderConfig) UnmarshalJSON(data []byte) error {
	type plain EncoderDecoderConfig
	var fields struct {
		plain
		TargetPositions positionsJSON `json:"target_positions"`
	}
	if err := kinds.Decode(data, &fields); err != nil {
		return fmt.Errorf("an encoder-decoder's configuration: %w", err)
	}
	*c = EncoderDecoderConfig(fields.plain)
	c.TargetPositions = fields.TargetPositions.PositionsConfig
	return nil
}

// NewEncoderDecoder makes an EncoderDecoder with the scopes encoder and decoder, in which the parameters have the names
// of an Encoder's and a Decoder's; if Shared, the table is embedding.weight.
func NewEncoderDecoder(p *Params, c EncoderDecoderConfig) (*EncoderDecoder, error) {
	m := &EncoderDecoder{name: p.scopeName("encoder-decoder")}
	source, target := c.Model, c.Model
	source.Outputs, source.Tied = 0, false
	if source.Vocab == 0 { // the scale is that of the target's tokens alone
		source.EmbeddingScale = 0
	}
	target.Tied = c.Model.Tied || c.Shared
	target.Vocab = cmp.Or(c.TargetVocab, c.Model.Vocab)
	target.Layers = cmp.Or(c.DecoderLayers, c.Model.Layers)
	if c.TargetPositions != nil {
		target.Positions = c.TargetPositions
	}
	var table *Param
	var err error
	if c.Shared {
		if vocab := c.Model.Vocab; target.Vocab != vocab || target.Outputs != 0 && target.Outputs != vocab {
			return nil, fmt.Errorf("%s: with Shared there is one vocabulary, but Vocab is %d, TargetVocab %d and Outputs %d", m.name, vocab, target.Vocab, target.Outputs)
		}
		if err := positive(m.name, size{"Vocab", target.Vocab}, size{"Dim", target.Dim}); err != nil {
			return nil, err
		}
		if table, err = p.Scope("embedding").New("weight", target.tableInit(), target.Vocab, target.Dim); err != nil {
			return nil, err
		}
		if source.EmbeddingScale == 0 {
			source.EmbeddingScale = math.Sqrt(float64(target.Dim))
		}
	}
	if m.Encoder, err = newEncoder(p.Scope("encoder"), source, table); err != nil {
		return nil, err
	}
	m.Decoder, err = newDecoder(p.Scope("decoder"), target, table, NewCrossDecoderBlock)
	return m, err
}

// Forward maps source ids of shape (B, S) and target ids of shape (B, T), both of dtype tensor.Int, to logits of shape
// (B, T, V): those of position t are for the token that follows the first t+1 target tokens. Without a batch axis, (S)
// and (T) give (T, V). The decoder is causal by itself, so that padding after a target needs no mask; mask masks the
// source alone. It must not be Causal.
//
// Pass the lengths of padded sources as its KeyLengths. What is masked matters neither to the logits nor to a gradient.
// An Allow or a Bias must broadcast to what the source attends to in itself, (B, H, S, S), and to what the target does
// in it, (B, H, T, S).
func (m *EncoderDecoder) Forward(b *Build, source, target *G.Node, mask Mask) (*G.Node, error) {
	if mask.Causal {
		return nil, fmt.Errorf("%s: the source's mask can't be Causal, as targets see the whole source; the target's attention to itself always is", m.name)
	}
	memory, err := m.Encode(b, source, mask)
	if err != nil {
		return nil, err
	}
	return m.Decode(b, target, memory, Mask{}, mask)
}

// Encode does the first half of Forward: it maps source ids of shape (B, S) to the encoder's output, (B, S, Dim). To
// write many tokens of a target, encode its source once, and give what a run of that graph returned to the graph of
// Decode, as the value of an input node.
func (m *EncoderDecoder) Encode(b *Build, source *G.Node, mask Mask) (memory *G.Node, err error) {
	if err := m.noPositions(b); err != nil {
		return nil, err
	}
	return m.Encoder.Forward(b, source, mask)
}

// Decode does the second half of Forward: it maps target ids of shape (B, T) and the encoder's output, of shape
// (B, S, Dim) and the parameters' dtype, to logits of shape (B, T, V). self masks the target's attention to itself,
// which is causal whatever it says, and source says which positions of the source a target may attend to.
//
// With a Cache in the Build, the ids are the new tokens of the targets that it holds. Its first graph must be given the
// memory; in those after, memory may be nil: the Cache holds the keys and values that the blocks made of it.
func (m *EncoderDecoder) Decode(b *Build, target, memory *G.Node, self, source Mask) (*G.Node, error) {
	x, err := m.decode(b, target, memory, self, source)
	if err != nil {
		return nil, err
	}
	return m.Decoder.finish(b, x)
}

// Next does what Decode does for the last token of every target alone, and returns the logits of the token that follows
// it, of shape (B, V). The row of a target
// that gets no new tokens means nothing. It needs a Cache in the Build.
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

// noPositions refuses the positions of a Build: they would be those of one sequence, and there are two.
func (m *EncoderDecoder) noPositions(b *Build) error {
	if b.Positions != nil {
		return fmt.Errorf("%s: the Build can't have Positions, as there are two sequences: those of each are counted from 0", m.name)
	}
	return nil
}
