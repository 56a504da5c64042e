package layers

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// ModelConfig describes an Encoder or a Decoder: token embeddings, positions, a stack of blocks, a norm after them (with
// pre-norm blocks) and a linear head.
type ModelConfig struct {
	Vocab  int // number of different tokens, V
	MaxLen int // longest sequence, where positions are learned: without Sinusoidal, Rotary, ALiBi and NoPositions
	Dim    int // width of the model, D
	Heads  int // number of heads, H; 1 if 0
	Layers int // number of blocks

	KeyValueHeads int     // see MultiHeadConfig; Heads if 0
	HeadDim       int     // see MultiHeadConfig; Dim/Heads if 0
	Scale         float64 // see AttentionOptions; 1/√K if 0
	Softcap       float64 // see AttentionOptions

	Hidden     int // width of the feed-forward layers; 4·Dim if 0
	Activation Activation
	Gated      bool    // see BlockConfig
	RMSNorm    bool    // see BlockConfig; of the norm after the blocks as well
	NormEps    float64 // see BlockConfig
	NoBias     bool    // see BlockConfig; of the head as well
	PostNorm   bool    // see BlockConfig
	FinalNorm  bool    // puts a norm after the last block with PostNorm too, as nn.Transformer does; it is there without
	Dropout    float64 // see BlockConfig; of the embeddings as well

	// Sinusoidal adds fixed waves for the positions, instead of rows that are learned.
	Sinusoidal bool

	// Rotary turns queries and keys by their positions, instead of adding something for the positions.
	Rotary *Rotary

	QKNorm bool // see BlockConfig

	// ALiBi lowers scores by distance, in self-attention, instead of adding something for the positions: see ALiBi.
	ALiBi bool

	// NoPositions adds nothing for the positions: it leaves telling them apart to the mask.
	NoPositions bool

	// Outputs is the width of the head: the number of classes of each position. An Encoder without a head, if it is 0,
	// returns its states; a Decoder's is Vocab if 0.
	Outputs int

	// Tied makes the table of the embeddings the head's weight too, and leaves out the head's bias (Press and Wolf, 2016;
	// Vaswani et al., 2017, section 3.4). Outputs must then be 0 or Vocab.
	Tied bool

	// EmbeddingScale multiplies the token embeddings; if 0, by √Dim where they are Tied, and by nothing otherwise.
	EmbeddingScale float64

	Init          Init // of every weight matrix; XavierUniform if nil
	EmbeddingInit Init // of token embeddings and learned positions; Normal(1) if nil, but Normal(1/√Dim) for Tied embeddings

	table *Param // embeds the tokens, if there is one already
	cross bool   // a Decoder's blocks attend to an encoder's output
}

// A Trunk is what an Encoder and a Decoder have besides their blocks.
type Trunk struct {
	Embedding *Embedding
	Positions Positions // nil with Rotary, ALiBi or NoPositions
	Norm      Norm      // after the last block; nil with PostNorm alone
	Head      *Linear   // nil without a head

	scale   float64   // of the embeddings
	slopes  []float64 // of ALiBi
	dropout Dropout
	name    string
}

func newTrunk(p *Params, name string, c ModelConfig) (*Trunk, error) {
	t := &Trunk{name: p.scopeName(name), dropout: Dropout{c.Dropout}, scale: c.EmbeddingScale}
	if err := c.check(t.name); err != nil {
		return nil, err
	}
	if t.scale == 0 {
		t.scale = 1
		if c.Tied {
			t.scale = math.Sqrt(float64(c.Dim))
		}
	}
	var err error
	if c.table != nil {
		t.Embedding = &Embedding{Weight: c.table, name: p.Scope("embedding").scopeName("embedding")}
	} else if t.Embedding, err = NewEmbedding(p.Scope("embedding"), EmbeddingConfig{Vocab: c.Vocab, Dim: c.Dim, Init: c.tableInit()}); err != nil {
		return nil, err
	}
	switch {
	case c.Sinusoidal:
		t.Positions = SinusoidalPositions{}
	case c.ALiBi:
		if t.slopes, err = (ALiBi{Heads: cmp.Or(c.Heads, 1)}).Slopes(); err != nil {
			return nil, err
		}
	case !c.NoPositions && c.Rotary == nil:
		if t.Positions, err = NewLearnedPositions(p.Scope("positions"), LearnedPositionsConfig{MaxLen: c.MaxLen, Dim: c.Dim, Init: c.EmbeddingInit}); err != nil {
			return nil, err
		}
	}
	if !c.PostNorm || c.FinalNorm {
		if t.Norm, err = newNorm(p.Scope("norm"), c.block()); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Tied:
		t.Head = &Linear{Weight: t.Embedding.Weight, name: p.Scope("head").scopeName("linear")}
	case c.Outputs > 0:
		t.Head, err = NewLinear(p.Scope("head"), LinearConfig{In: c.Dim, Out: c.Outputs, NoBias: c.NoBias, WeightInit: c.Init})
	}
	return t, err
}

// check checks what is the trunk's own.
func (c ModelConfig) check(name string) error {
	if err := positive(name, size{"Vocab", c.Vocab}, size{"Dim", c.Dim}, size{"Layers", c.Layers}); err != nil {
		return err
	}
	if err := ops.CheckRate(name, c.Dropout); err != nil {
		return err
	}
	if c.Outputs < 0 {
		return fmt.Errorf("%s: Outputs can't be negative, got %d", name, c.Outputs)
	}
	if c.Tied && c.Outputs != 0 && c.Outputs != c.Vocab {
		return fmt.Errorf("%s: with Tied there are as many outputs as tokens: Outputs must be 0 or %d, got %d", name, c.Vocab, c.Outputs)
	}
	if math.IsNaN(c.EmbeddingScale) || math.IsInf(c.EmbeddingScale, 0) {
		return fmt.Errorf("%s: EmbeddingScale must be finite, got %v", name, c.EmbeddingScale)
	}
	var schemes []string
	for _, s := range []struct {
		name string
		on   bool
	}{{"Sinusoidal", c.Sinusoidal}, {"Rotary", c.Rotary != nil}, {"ALiBi", c.ALiBi}, {"NoPositions", c.NoPositions}} {
		if s.on {
			schemes = append(schemes, s.name)
		}
	}
	if len(schemes) > 1 {
		return fmt.Errorf("%s: there can be one way to tell positions apart, got %s", name, strings.Join(schemes, " and "))
	}
	return nil
}

// tableInit is the initial embeddings.
func (c ModelConfig) tableInit() Init {
	if c.EmbeddingInit == nil && c.Tied {
		return Normal(1 / math.Sqrt(float64(c.Dim)))
	}
	return c.EmbeddingInit
}

func (c ModelConfig) block() BlockConfig {
	return BlockConfig{
		Dim:           c.Dim,
		Heads:         c.Heads,
		Hidden:        c.Hidden,
		Activation:    c.Activation,
		Gated:         c.Gated,
		RMSNorm:       c.RMSNorm,
		NormEps:       c.NormEps,
		NoBias:        c.NoBias,
		PostNorm:      c.PostNorm,
		Dropout:       c.Dropout,
		KeyValueHeads: c.KeyValueHeads,
		HeadDim:       c.HeadDim,
		Scale:         c.Scale,
		Softcap:       c.Softcap,
		Rotary:        c.Rotary,
		QKNorm:        c.QKNorm,
		Cross:         c.cross,
		Init:          c.Init,
	}
}

// embed maps ids (B, T) to (B, T, D). positions are those of the tokens, as Positions takes them.
func (t *Trunk) embed(b *Build, ids, positions *G.Node) (*G.Node, error) {
	if ids == nil {
		return nil, fmt.Errorf("%s: the ids are nil", t.name)
	}
	if d := ids.Dims(); ids.Dtype() != tensor.Int || d != 1 && d != 2 {
		return nil, fmt.Errorf("%s: the ids must be int of shape (B, T) or (T), got %v of shape %v", t.name, ids.Dtype(), ids.Shape())
	}
	x, err := t.Embedding.Forward(b, ids)
	if err != nil {
		return nil, err
	}
	if t.scale != 1 {
		if x, err = ops.Scale(b.env(), x, t.scale); err != nil {
			return nil, err
		}
	}
	if t.Positions != nil {
		if x, err = t.Positions.Forward(b, x, positions); err != nil {
			return nil, err
		}
	}
	return t.dropout.Forward(b, x)
}

// mask is a mask of self-attention, with the model's ALiBi.
func (t *Trunk) mask(m Mask) (Mask, error) {
	if t.slopes != nil {
		if m.Slopes != nil {
			return m, fmt.Errorf("%s: the mask can't have Slopes, as the model has its own, those of ALiBi", t.name)
		}
		m.Slopes = t.slopes
	}
	return m, nil
}

// finish applies what follows the blocks.
func (t *Trunk) finish(b *Build, x *G.Node) (*G.Node, error) {
	var err error
	if t.Norm != nil {
		if x, err = t.Norm.Forward(b, x); err != nil {
			return nil, err
		}
	}
	if t.Head != nil {
		return t.Head.Forward(b, x)
	}
	return x, nil
}

// Encoder is a transformer in which every position attends to the whole sequence (Vaswani et al., 2017; the head labels
// each position, as in Devlin et al., 2018).
type Encoder struct {
	*Trunk
	Blocks []*EncoderBlock
}

// NewEncoder makes an Encoder with the scopes embedding, positions, blocks.0, blocks.1, …, norm and head.
func NewEncoder(p *Params, c ModelConfig) (*Encoder, error) {
	t, err := newTrunk(p, "encoder", c)
	if err != nil {
		return nil, err
	}
	e := &Encoder{Trunk: t}
	for i := range c.Layers {
		block, err := NewEncoderBlock(p.Scope("blocks").Scope(strconv.Itoa(i)), c.block())
		if err != nil {
			return nil, err
		}
		e.Blocks = append(e.Blocks, block)
	}
	return e, nil
}

// Forward maps ids of shape (B, T), of dtype tensor.Int, to logits of shape (B, T, Outputs), or to states of shape
// (B, T, Dim) without a head. Pass the lengths of padded sequences as the mask's KeyLengths.
func (e *Encoder) Forward(b *Build, ids *G.Node, m Mask) (*G.Node, error) {
	x, err := e.embed(b, ids, b.positions())
	if err != nil {
		return nil, err
	}
	if m, err = e.mask(m); err != nil {
		return nil, err
	}
	for _, block := range e.Blocks {
		if x, err = block.Forward(b, x, m); err != nil {
			return nil, err
		}
	}
	return e.finish(b, x)
}
