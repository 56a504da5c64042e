package layers

import (
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// A Cache holds the keys and values that a decoder's attention layers computed for the earlier tokens of a batch of
// sequences, so that a graph computes only those of the new tokens. Its memory outlives graphs: one graph may process a
// prompt, and another continue one token at a time.
//
// Graphs of a Decoder, an EncoderDecoder's Decode, a DecoderBlock or ForwardCached use the Cache of their Build. Each
// run takes four calls:
//
//	err := cache.Extend(counts...) // the number of new tokens of each sequence; ids after them are padding
//	err = vm.RunAll()              // stores their keys and values
//	vm.Reset()
//	cache.Commit()                 // makes the new tokens part of the sequences
//
// A run that failed or wasn't committed can be repeated, or undone with Cancel. A Cache serves one run at a time, only
// graphs for evaluation, and only one model, and a graph may apply each layer only once. Make one with NewCache.
type Cache struct {
	batch, capacity int
	lengths, counts []int
	places          map[string]*place
	bytes           int // memory used by the places
}

// NewCache makes an empty Cache for batch sequences with up to capacity tokens each. It returns an error if the
// machine's memory couldn't hold the tokens for even the smallest model. Building a graph checks the memory that its
// model needs.
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

// Extend sets the number of new tokens that the next run adds to each sequence. A count may not exceed the length of
// the graph's input; input after the new tokens is padding. Extend returns an error if a sequence has no room for its
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

// Cancel undoes Extend, for a run that failed or whose tokens you don't want.
func (c *Cache) Cancel() { clear(c.counts) }

// settled returns an error between an Extend and its Commit or Cancel.
func (c *Cache) settled() error {
	if slices.Max(c.counts) > 0 {
		return errors.New("cache: an Extend is pending: call Commit or Cancel first")
	}
	return nil
}

// Commit makes the new tokens of the last run part of the sequences, by the counts given to Extend.
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

// Reorder replaces each sequence b by a copy of sequence parents[b], as beam search needs. It also moves the keys and
// values of cross-attention. The caller must reorder the nodes of masks, such as the KeyLengths of sources.
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

// lengthsNode and countsNode return the cache's lengths and the counts given to Extend as nodes of shape (B).
func (c *Cache) lengthsNode(g *G.ExprGraph) (*G.Node, error) {
	return cacheNode(g, "cache.lengths", c.lengths)
}
func (c *Cache) countsNode(g *G.ExprGraph) (*G.Node, error) {
	return cacheNode(g, "cache.counts", c.counts)
}

func cacheNode(g *G.ExprGraph, name string, x []int) (*G.Node, error) {
	n, _, err := named(g, name, tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x)))
	if err != nil {
		return nil, errors.New("cache: the graph already uses another Cache: a graph can have only one")
	}
	return n, nil
}

// positions returns the positions of new tokens of shape (B, T) or (T): a node of shape (B, T).
func (c *Cache) positions(b *Build, g *G.ExprGraph, tokens tensor.Shape) (*G.Node, error) {
	batch, length := batchOf(tokens, 1), tokens[len(tokens)-1]
	if batch != c.batch {
		return nil, fmt.Errorf("cache: the batch must have %d sequences, got tokens of shape %v", c.batch, tokens)
	}
	if length > c.capacity {
		return nil, fmt.Errorf("cache: a sequence can have at most %d tokens, got tokens of shape %v", c.capacity, tokens)
	}
	lengths, err := c.lengthsNode(g)
	if err != nil {
		return nil, err
	}
	counts, err := c.countsNode(g)
	if err != nil {
		return nil, err
	}
	return ops.PositionIDs(b.Env(), lengths, counts, tensor.Shape{batch, length}, "cache", 0)
}

// place is one layer's memory for keys or for values.
type place struct {
	made   *Param // the weight that computes them, which identifies the model
	store  *ops.Store
	memory *ops.Memory // for cross-attention, instead of store
}

// place returns the place called name, for keys or values computed with weight. It returns an error if the place
// belongs to another weight, or if the graph uses it already.
func (c *Cache) place(b *Build, name string, weight *Param) (*place, error) {
	p := c.places[name]
	if p == nil {
		p = &place{made: weight}
		c.places[name] = p
	}
	if p.made != weight {
		return nil, fmt.Errorf("cache: it holds another model's %s: use one Cache per model", name)
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

// leastTokenBytes is the memory that a token needs at least: a key and a value of one float32 each.
const leastTokenBytes = 8

// append stores new keys or values, (B, T, W), and returns all stored ones, (B, Capacity, W).
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
			return nil, fmt.Errorf("cache: %s for %d sequences of %d tokens with %d numbers each: %w", name, c.batch, c.capacity, width, err)
		}
		c.bytes += bytes
		p.store = ops.NewStore(name, x.Dtype(), c.batch, c.capacity, width)
	}
	lengths, err := c.lengthsNode(x.Graph())
	if err != nil {
		return nil, err
	}
	counts, err := c.countsNode(x.Graph())
	if err != nil {
		return nil, err
	}
	return p.store.Append(b.Env(), x, lengths, counts)
}

// keep stores keys or values of cross-attention, (B, S, W), and returns them.
func (c *Cache) keep(b *Build, name string, weight *Param, x *G.Node) (*G.Node, error) {
	if s := x.Shape(); batchOf(s, 2) != c.batch {
		return nil, fmt.Errorf("cache: the encoder's output must have %d sequences, got shape %v", c.batch, s)
	}
	p, err := c.place(b, name, weight)
	if err != nil {
		return nil, err
	}
	if p.memory == nil {
		p.memory = ops.NewMemory(name)
	}
	return p.memory.Keep(b.Env(), x)
}

// kept returns the keys or values that keep stored last, as a node of graph g with dims axes.
func (c *Cache) kept(b *Build, name string, weight *Param, g *G.ExprGraph, dims int) (*G.Node, error) {
	p, err := c.place(b, name, weight)
	if err != nil {
		return nil, err
	}
	if p.memory == nil {
		return nil, fmt.Errorf("cache: it holds no %s: first build a graph that takes the encoder's output", name)
	}
	lengths, err := c.lengthsNode(g)
	if err != nil {
		return nil, err
	}
	return p.memory.Read(b.Env(), lengths, weight.Value.Dtype(), dims)
}

// batchOf returns the size of the batch axis, which comes before the given number of other axes, or 1 if there is none.
func batchOf(s tensor.Shape, others int) int {
	if len(s) > others {
		return s[0]
	}
	return 1
}
