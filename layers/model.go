package layers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// ModelConfig describes an Encoder or a Decoder: token embeddings, positions, a stack of blocks, a norm after them
// (with pre-norm blocks) and a linear head. It can be written to JSON and read back, unless it holds a position scheme
// of your own or an Init with a Func.
type ModelConfig struct {
	// Vocab is the number of different tokens, V. If it is 0, the model has no embedding table, and Forward takes
	// embeddings instead of ids.
	Vocab  int `json:"vocab,omitzero"`
	Dim    int `json:"dim"`    // width of the model, D
	Layers int `json:"layers"` // number of blocks

	// Positions is the position scheme: Learned, Rotary, NoPositions and so on, or one of your own.
	Positions PositionsConfig `json:"positions,omitzero"`

	// Segments is the number of segments that a sequence may have, such as 2 for a question and its answer. Each has a
	// learned vector, which is added to the embeddings of its tokens (Devlin et al., 2018, "token types"). The Build's
	// Segments say which token is in which segment; without them, all tokens are in segment 0. 0 means none.
	Segments int `json:"segments,omitzero"`

	// EmbeddingNorm adds a norm, described by Block.Norm, after segments and positions have been added to the
	// embeddings, before dropout (Devlin et al., 2018).
	EmbeddingNorm bool `json:"embedding_norm,omitzero"`

	// Projection gives the embeddings a width of their own; nil for the width Dim.
	Projection *ProjectionConfig `json:"projection,omitzero"`

	Block BlockConfig `json:"block"` // configuration of the blocks; its Norm also describes the model's other norms

	// Variants describes blocks that differ from Block and from the model's Positions. An EncoderDecoder has them in
	// its encoder and in its decoder.
	Variants []BlockVariant `json:"variants,omitzero"`

	// Shared is the number of blocks with weights of their own, which must divide Layers. Each is used Layers/Shared
	// times in a row (Lan et al., ALBERT, 2019; with Shared 1, all blocks have the same weights). 0 means Layers.
	Shared int `json:"shared,omitzero"`

	// FinalNorm adds a norm after the last block even with PostNorm, like nn.Transformer. Without PostNorm there is
	// always such a norm.
	FinalNorm bool `json:"final_norm,omitzero"`

	// Outputs is the width of the head: the number of classes for each position. 0 means Vocab for a Decoder and for a
	// Tied model, and no head for other models. Without a head, Forward returns the states after the last block and
	// norm.
	Outputs int `json:"outputs,omitzero"`

	NoBias bool `json:"no_bias,omitzero"` // leave out the bias of the head

	// Tied uses the embedding table as the head's weight too, and leaves out the head's bias (Press and Wolf, 2016;
	// Vaswani et al., 2017, section 3.4). Outputs must then be 0 or Vocab.
	Tied     bool `json:"tied,omitzero"`
	TiedBias bool `json:"tied_bias,omitzero"` // add a bias to the head of a Tied model, as in BERT

	Transform    *TransformConfig `json:"transform,omitzero"`     // a hidden layer before the head; nil for none
	LogitSoftcap float64          `json:"logit_softcap,omitzero"` // a logit z becomes LogitSoftcap·tanh(z/LogitSoftcap) (Gemma 2, 2024); 0 for none

	HeadScale float64 `json:"head_scale,omitzero"` // multiplies the head's input, and so its logits without the bias (Granite, 2024); 0 means 1

	// EmbeddingScale multiplies the token embeddings. 0 means √Dim for a Tied model, and 1 otherwise.
	EmbeddingScale float64 `json:"embedding_scale,omitzero"`

	Dropout float64 `json:"dropout,omitzero"` // dropout rate of the embeddings, in training

	Init Init `json:"init,omitzero"` // for every weight matrix without an Init of its own; see Init

	// EmbeddingInit is for embeddings of tokens and segments, and for Learned positions without an Init of their own.
	// The zero Init means Normal(1), or Normal(1/√Dim) for the first two if the model is Tied.
	EmbeddingInit Init `json:"embedding_init,omitzero"`
}

// MarshalJSON returns the configuration as JSON. It returns an error if the Positions aren't a scheme of this package,
// or if an Init has a Func.
func (c ModelConfig) MarshalJSON() ([]byte, error) {
	type plain ModelConfig
	return json.Marshal(struct {
		plain
		Positions positionsJSON `json:"positions,omitzero"` // shadows plain's field
	}{plain(c), positionsJSON{c.Positions}})
}

// UnmarshalJSON replaces the configuration with the one in data. It returns an error if data has an unknown field or
// position scheme.
func (c *ModelConfig) UnmarshalJSON(data []byte) error {
	type plain ModelConfig
	var fields struct {
		plain
		Positions positionsJSON `json:"positions"`
	}
	if err := choices.Decode(data, &fields); err != nil {
		return fmt.Errorf("a model's configuration: %w", err)
	}
	*c = ModelConfig(fields.plain)
	c.Positions = fields.Positions.PositionsConfig
	return nil
}

// A Trunk holds the parts of an Encoder or a Decoder.
type Trunk struct {
	Embedding     *Embedding // nil without a vocabulary
	Segments      *Embedding // nil without segments
	Positions     Positions
	EmbeddingNorm *Norm   // nil unless the configuration has EmbeddingNorm
	Projection    *Linear // of the embeddings; nil for none
	Blocks        []*Block
	Norm          *Norm      // after the last block; nil with PostNorm unless FinalNorm is set
	Transform     *Transform // before the head; nil for none
	Head          *Linear    // nil without a head

	dtype   tensor.Dtype
	dim     int     // width of the embeddings
	scale   float64 // factor for the token embeddings
	softcap float64 // of the logits; 0 for none
	factor  float64 // HeadScale
	dropout Dropout
	name    string

	normAfter bool // whether the EmbeddingNorm follows the Projection
}

type blockMaker func(p *Params, dim int, c BlockConfig) (*Block, error)

// newTrunk makes a Trunk; newBlock makes each of its blocks. If table isn't nil, the Trunk uses it as the embedding
// table.
func newTrunk(p *Params, name string, c ModelConfig, table *Param, newBlock blockMaker) (*Trunk, error) {
	p = p.withInit(c.Init)
	t := &Trunk{name: p.scopeName(name), dtype: p.Dtype(), dim: c.EmbeddingWidth(), dropout: Dropout{c.Dropout}, scale: c.EmbeddingScale}
	if err := c.check(t.name); err != nil {
		return nil, err
	}
	if t.scale == 0 {
		t.scale = 1
		if c.Tied {
			t.scale = math.Sqrt(float64(t.dim))
		}
	}
	var err error
	if table != nil {
		t.Embedding = &Embedding{Weight: table, name: p.Scope("embedding").scopeName("embedding")}
	} else if c.Vocab > 0 {
		if t.Embedding, err = NewEmbedding(p.Scope("embedding"), c.Vocab, t.dim, c.tableInit()); err != nil {
			return nil, err
		}
	}
	if c.Segments > 0 {
		if t.Segments, err = NewEmbedding(p.Scope("segments"), c.Segments, t.dim, c.tableInit()); err != nil {
			return nil, err
		}
	}
	if t.Positions, err = c.newPositions(p.Scope("positions"), c.Positions); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	if t.Positions == nil {
		return nil, fmt.Errorf("%s: the New of its Positions, a %T, returned nil: return NoPositions{} for none", t.name, c.Positions)
	}
	if err := t.newProjection(p, c); err != nil {
		return nil, err
	}
	if !c.Block.PostNorm || c.FinalNorm {
		if t.Norm, err = NewNorm(p.Scope("norm"), c.Dim, c.Block.Norm); err != nil {
			return nil, err
		}
	}
	if err := t.addHead(p, c); err != nil {
		return nil, err
	}
	return t, t.addBlocks(p, c, newBlock)
}

// check checks the fields that newTrunk uses itself.
func (c ModelConfig) check(name string) error {
	if err := cmp.Or(positive(name, size{"Dim", c.Dim}, size{"Layers", c.Layers}), ops.CheckRate(name, c.Dropout)); err != nil {
		return err
	}
	switch x := c.EmbeddingScale; {
	case c.Vocab < 0:
		return fmt.Errorf("%s: Vocab must be at least 1, or 0 for a model without an embedding table, got %d", name, c.Vocab)
	case c.Positions == nil:
		return fmt.Errorf("%s: Positions must not be nil: choose a position scheme, such as Learned, Rotary or NoPositions", name)
	case c.Segments < 0:
		return fmt.Errorf("%s: Segments can't be negative, got %d", name, c.Segments)
	case c.Vocab == 0 && (c.Tied || x != 0):
		return fmt.Errorf("%s: Tied and EmbeddingScale are for token embeddings: they need a Vocab", name)
	case !(math.Abs(x) <= ops.Largest):
		return fmt.Errorf("%s: EmbeddingScale must be finite and at most %v in size, got %v", name, ops.Largest, x)
	}
	return cmp.Or(c.checkHead(name), c.checkShared(name))
}

// tableInit returns the Init of the token embeddings.
func (c ModelConfig) tableInit() Init {
	if c.Tied {
		return c.EmbeddingInit.or(Normal(1 / math.Sqrt(float64(c.EmbeddingWidth()))))
	}
	return c.EmbeddingInit
}

// tokens returns the shape of an input's tokens, (B, T) or (T), and reports whether the input holds ids.
func (t *Trunk) tokens(x *G.Node) (tokens tensor.Shape, ids bool, err error) {
	s, d := x.Shape(), x.Dims()
	if t.Embedding != nil && x.Dtype() == tensor.Int && (d == 1 || d == 2) {
		return s, true, nil
	}
	if x.Dtype() == t.dtype && (d == 2 || d == 3) && s[d-1] == t.dim {
		return s[:d-1], false, nil
	}
	want := fmt.Sprintf("embeddings, %v of shape (B, T, %d) or (T, %d)", t.dtype, t.dim, t.dim)
	if t.Embedding != nil {
		want = "ids, int of shape (B, T) or (T), or " + want
	}
	return nil, false, fmt.Errorf("%s: the input must be %s, got %v of shape %v", t.name, want, x.Dtype(), s)
}

// states maps ids (B, T) or embeddings (B, T, D) to the states after the blocks, (B, T, D). See Positions for the
// argument positions, and Block.ForwardCross for the arguments memory, self and cross.
func (t *Trunk) states(b *Build, x, memory, positions *G.Node, self, cross Mask) (*G.Node, error) {
	tokens, ids, err := t.tokens(x)
	if err != nil {
		return nil, err
	}
	if ids {
		if x, err = t.Embedding.Forward(b, x); err != nil {
			return nil, err
		}
		if x, err = scaled(b, x, t.scale); err != nil {
			return nil, err
		}
	}
	if x, err = t.addSegments(b, x, tokens); err != nil {
		return nil, err
	}
	if x, err = t.Positions.Embed(b, x, positions); err != nil {
		return nil, err
	}
	if x, err = t.project(b, x); err != nil {
		return nil, err
	}
	for _, block := range t.Blocks {
		if x, err = block.ForwardCross(b, x, memory, self, cross); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// addSegments adds the vector of each token's segment to its embedding, if the model has segments.
func (t *Trunk) addSegments(b *Build, x *G.Node, tokens tensor.Shape) (*G.Node, error) {
	switch {
	case t.Segments == nil && b.Segments == nil:
		return x, nil
	case t.Segments == nil:
		return nil, fmt.Errorf("%s: the Build has Segments, but the model has none: set Segments in its ModelConfig", t.name)
	case b.Segments == nil:
		table, err := b.Bind(x.Graph(), t.Segments.Weight)
		if err != nil {
			return nil, err
		}
		return ops.AddRows(b.Env(), x, table, 1)
	case !b.Segments.Shape().Eq(tokens):
		return nil, fmt.Errorf("%s: the Build's Segments must have the shape of the tokens, %v, got %v", t.name, tokens, b.Segments.Shape())
	}
	vectors, err := t.Segments.Forward(b, b.Segments) // (B, T) -> (B, T, D)
	if err != nil {
		return nil, err
	}
	return ops.Add(b.Env(), x, vectors)
}

// addBlocks makes the blocks in the scopes blocks.0, blocks.1, …, as many as have weights of their own. All blocks need
// the same memory, up to what a variant changes. After the first block, and after the first one of a variant, addBlocks
// therefore knows how much the others need, and returns an error if the machine has less.
func (t *Trunk) addBlocks(p *Params, c ModelConfig, newBlock blockMaker) error {
	variants, err := c.variants(p.Scope("positions"), t.name, t.Positions)
	if err != nil {
		return err
	}
	counts, seen := map[*FeedForwardConfig]int{nil: cmp.Or(c.Shared, c.Layers)}, map[*FeedForwardConfig]bool{}
	for _, v := range c.Variants {
		if v.FeedForward != nil {
			counts[v.FeedForward] += len(v.Blocks)
			counts[nil] -= len(v.Blocks)
		}
	}
	for i := range c.Layers {
		own := c.shared(i)
		if i > 0 && own == c.shared(i-1) {
			t.Blocks = append(t.Blocks, t.Blocks[i-1].again(p, i))
			continue
		}
		before := p.set.bytes
		v, ok := variants[i]
		if !ok {
			v = variant{block: c.Block, positions: t.Positions}
		}
		scope := p.Scope("blocks").Scope(strconv.Itoa(own))
		block, err := newBlock(scope, c.Dim, v.block)
		if r, ok := c.Positions.(RelativeBias); ok && r.PerBlock && v.positions == t.Positions && err == nil {
			r.PerBlock = false
			v.positions, err = c.newPositions(scope.Scope("positions"), r)
		}
		if err != nil {
			return err
		}
		if !seen[v.own] {
			if err := memory.Check(p.set.bytes, memory.Product(max(counts[v.own]-1, 0), p.set.bytes-before)); err != nil {
				return fmt.Errorf("%s: %d blocks: %w", t.name, c.Layers, err)
			}
			seen[v.own] = true
		}
		if block.Attention.Positions = v.positions; own != i {
			block = block.again(p, i)
		}
		t.Blocks = append(t.Blocks, block)
	}
	return nil
}
