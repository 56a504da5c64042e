package layers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// A Cache holds a batch of sequences for a decoder: the keys and values of the tokens so far, for every attention
// layer. A graph then computes the keys and values of only the new tokens. Several graphs can use the same Cache: one
// graph may process a prompt, and another graph may continue it token by token.
//
// Graphs of a Decoder, an EncoderDecoder's Decode or a Block for a decoder use the Cache of their Build. They have no
// gradient. Make each run with these four calls:
//
//	err := cache.Extend(counts...) // number of new tokens in each sequence; ids after the new tokens are padding
//	err = vm.RunAll()              // stores the keys and values of the new tokens
//	vm.Reset()
//	cache.Commit()                 // adds the new tokens to the sequences
//
// You can repeat a run that failed or wasn't committed, or undo it with Cancel. Only one run at a time may use a Cache.
// All graphs that use it must be for evaluation and for the same model, and a graph may apply each layer only once.
//
// All positions, also those in masks, count from the start of a sequence. The mask of self-attention applies to
// scores of shape (B, H, T, Capacity), and must have no offset; attention is always causal. In the mask of attention
// to an encoder's output, a query's position is its position in its sequence plus Offset, and a key's position is its
// position in that output; it must have no Offsets. Make a Cache with NewCache.
type Cache struct {
	batch, capacity int
	lengths, counts []int
	places          map[string]*place
	bytes           int // memory of the stored keys and values, without cross-attention
}

// NewCache makes an empty Cache. The argument batch is the number of sequences, and the argument capacity is the
// largest number of tokens in each. NewCache returns an error if the machine has too little memory even for the
// smallest model. When you build a graph, Forward checks the memory that its model needs.
func NewCache(batch, capacity int) (*Cache, error) {
	if err := positive("cache", size{"the batch", batch}, size{"the capacity", capacity}); err != nil {
		return nil, err
	}
	if err := memory.Check(memory.Product(batch, capacity, leastTokenBytes), memory.Product(batch, 16)); err != nil {
		return nil, fmt.Errorf("cache: %d sequences of %d tokens: %w", batch, capacity, err)
	}
	return &Cache{
		batch: batch, capacity: capacity, lengths: make([]int, batch), counts: make([]int, batch),
		places: map[string]*place{},
	}, nil
}

// Lengths returns the number of tokens in each sequence.
func (c *Cache) Lengths() []int { return slices.Clone(c.lengths) }

// Extend sets the number of new tokens in each sequence for the next run. A number may not exceed the length of the
// graph's input; ids after the new tokens are padding. Extend returns an error if a sequence has no room for its new
// tokens.
func (c *Cache) Extend(counts ...int) error {
	if len(counts) != c.batch {
		return fmt.Errorf("cache: %d sequences need one count each, got %d counts", c.batch, len(counts))
	}
	if slices.Max(counts) == 0 {
		return errors.New("cache: no sequence gets a new token: skip the run")
	}
	for b, n := range counts {
		if n < 0 {
			return fmt.Errorf("cache: sequence %d can't get %d tokens", b, n)
		}
		if n > c.capacity-c.lengths[b] {
			return fmt.Errorf("cache: sequence %d has %d tokens of at most %d, and can't get %d more", b, c.lengths[b], c.capacity, n)
		}
	}
	copy(c.counts, counts)
	return nil
}

// Cancel undoes Extend. Call it after a run that failed, or instead of Commit.
func (c *Cache) Cancel() { clear(c.counts) }

// settled returns an error if Extend has been called without a Commit or Cancel after it.
func (c *Cache) settled() error {
	if slices.Max(c.counts) > 0 {
		return errors.New("cache: an Extend is pending: call Commit or Cancel first")
	}
	return nil
}

// Commit adds the new tokens of the last run to the sequences. Extend has set their numbers.
func (c *Cache) Commit() {
	for b, n := range c.counts {
		c.lengths[b] += n
	}
	clear(c.counts)
}

// Reset empties all sequences.
func (c *Cache) Reset() {
	c.Cancel()
	clear(c.lengths)
}

// Truncate shortens each sequence to the given length, which may not exceed its present length.
func (c *Cache) Truncate(lengths ...int) error {
	if len(lengths) != c.batch {
		return fmt.Errorf("cache: %d sequences need one length each, got %d lengths", c.batch, len(lengths))
	}
	for b, n := range lengths {
		if n < 0 || n > c.lengths[b] {
			return fmt.Errorf("cache: sequence %d has %d tokens, and can't be shortened to %d", b, c.lengths[b], n)
		}
	}
	if err := c.settled(); err != nil {
		return err
	}
	copy(c.lengths, lengths)
	return nil
}

// Reorder replaces each sequence b by a copy of sequence parents[b], as beam search needs. It also reorders the keys
// and values of cross-attention. It doesn't reorder the values of mask nodes, such as the KeyLengths of sources: the
// caller must do that.
func (c *Cache) Reorder(parents ...int) error {
	if len(parents) != c.batch {
		return fmt.Errorf("cache: %d sequences need one parent each, got %d parents", c.batch, len(parents))
	}
	for b, from := range parents {
		if from < 0 || from >= c.batch {
			return fmt.Errorf("cache: the parent of sequence %d must be from 0 to %d, got %d", b, c.batch-1, from)
		}
	}
	if err := c.settled(); err != nil {
		return err
	}
	for _, p := range c.places {
		if p.memory != nil {
			p.memory.Reorder(parents)
		} else if p.store != nil {
			p.store.Reorder(parents, c.lengths)
		}
	}
	old := c.Lengths()
	for b, from := range parents {
		c.lengths[b] = old[from]
	}
	return nil
}

// nodes returns nodes of shape (B): the lengths of the sequences and the counts given to Extend.
func (c *Cache) nodes(g *G.ExprGraph) (lengths, counts *G.Node, err error) {
	vector := func(x []int) *tensor.Dense { return tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x)) }
	lengths, _, err = named(g, "cache.lengths", vector(c.lengths))
	if err == nil {
		counts, _, err = named(g, "cache.counts", vector(c.counts))
	}
	if err != nil {
		return nil, nil, errors.New("cache: the graph already uses another Cache: a graph can have only one")
	}
	return lengths, counts, nil
}

// positions returns a node of shape (B, T) with the positions of new tokens. The argument tokens is the shape of their
// ids, (B, T) or (T).
func (c *Cache) positions(b *Build, g *G.ExprGraph, tokens tensor.Shape) (*G.Node, error) {
	batch, length := batchOf(tokens, 1), tokens[len(tokens)-1]
	if batch != c.batch {
		return nil, fmt.Errorf("cache: the batch must have %d sequences, got tokens of shape %v", c.batch, tokens)
	}
	if length > c.capacity {
		return nil, fmt.Errorf("cache: a sequence can have at most %d tokens, got tokens of shape %v", c.capacity, tokens)
	}
	lengths, counts, err := c.nodes(g)
	if err != nil {
		return nil, err
	}
	return ops.PositionIDs(b.Env(), lengths, counts, tensor.Shape{batch, length}, "cache", 0)
}

// place is one layer's memory for keys or for values.
type place struct {
	made   *Param // the weight that computes the keys or values; identifies the model
	store  *ops.Store
	memory *ops.Memory // for cross-attention, instead of store
}

// place returns the place called name, for keys or values computed with weight. It returns an error if the place
// belongs to another weight, or if the graph already uses the place.
func (c *Cache) place(b *Build, name string, weight *Param) (*place, error) {
	p := c.places[name]
	if p == nil {
		p = &place{made: weight}
		c.places[name] = p
	}
	if p.made != weight {
		return nil, fmt.Errorf("cache: the Cache holds another model's %s: use one Cache per model", name)
	}
	if b.placed == nil {
		b.placed = map[string]bool{}
	}
	if b.placed[name] {
		return nil, fmt.Errorf("cache: the graph applies the layer twice, but the cache has only one place for its %s", name)
	}
	b.placed[name] = true
	return p, nil
}

// leastTokenBytes is the memory of a token in the smallest model: a key and a value of one float32 each.
const leastTokenBytes = 8

// append stores new keys or values, (B, T, W), and returns all stored keys or values, (B, Capacity, W).
func (c *Cache) append(b *Build, name string, weight *Param, x *G.Node) (*G.Node, error) {
	p, err := c.place(b, name, weight)
	if err != nil {
		return nil, err
	}
	if p.store == nil {
		s := x.Shape()
		width := s[len(s)-1]
		bytes := memory.Product(c.batch, c.capacity, width, int(x.Dtype().Size()))
		if err := memory.Check(c.bytes, bytes); err != nil {
			return nil, fmt.Errorf("cache: %s for %d sequences of %d tokens with %d numbers per token: %w", name, c.batch, c.capacity, width, err)
		}
		c.bytes += bytes
		p.store = ops.NewStore(name, x.Dtype(), c.batch, c.capacity, width)
	}
	lengths, counts, err := c.nodes(x.Graph())
	if err != nil {
		return nil, err
	}
	return p.store.Append(b.Env(), x, lengths, counts)
}

// memory stores the keys or values x of cross-attention, (B, S, W), and returns them. If x is nil, memory returns the
// last keys or values stored, with the graph and the number of axes of query.
func (c *Cache) memory(b *Build, name string, weight *Param, x, query *G.Node) (*G.Node, error) {
	if x != nil && batchOf(x.Shape(), 2) != c.batch {
		return nil, fmt.Errorf("cache: the encoder's output must have %d sequences, got shape %v", c.batch, x.Shape())
	}
	p, err := c.place(b, name, weight)
	if err != nil {
		return nil, err
	}
	if x != nil {
		p.memory = cmp.Or(p.memory, ops.NewMemory(name))
		return p.memory.Keep(b.Env(), x)
	}
	if p.memory == nil {
		return nil, fmt.Errorf("cache: the Cache holds no %s: first build a graph whose input is the encoder's output", name)
	}
	lengths, _, err := c.nodes(query.Graph())
	if err != nil {
		return nil, err
	}
	return p.memory.Read(b.Env(), lengths, weight.Value.Dtype(), query.Dims())
}

// batchOf returns the size of the batch axis, or 1 if there is none. The argument others is the number of other axes.
func batchOf(s tensor.Shape, others int) int {
	if len(s) > others {
		return s[0]
	}
	return 1
}
