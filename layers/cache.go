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

// A Cache holds the keys and values that a decoder's attention layers computed for the tokens of a batch of sequences,
// so that a graph which continues them computes those of its new tokens alone. Its memory outlives graphs: one for a
// prompt may fill it, and one for a token at a time go on from there.
//
// The graph of a Decoder, an EncoderDecoder's Decode, a DecoderBlock or ForwardCached uses the Cache of its Build. A
// run is a step of four:
//
//	err := cache.Extend(counts...) // how many new tokens each sequence gets; the ids after are padding
//	err = vm.RunAll()              // stores their keys and values
//	vm.Reset()
//	cache.Commit()                 // they count from now on
//
// A run that failed, or wasn't committed, can be done again, or taken back by Cancel. A Cache serves one run at a time,
// graphs for evaluation, and one model, each layer of which is applied once in a graph. Make one with NewCache.
type Cache struct {
	batch, capacity int
	lengths, counts []int
	places          map[string]*place
	bytes           int // of memory that the places take
}

// NewCache makes an empty Cache for so many sequences, each of at most capacity tokens. It is an error if the machine
// hasn't the memory for so many tokens, whatever the model. What a model's take is found out when a graph is built.
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

// Lengths returns how many tokens of each sequence are held.
func (c *Cache) Lengths() []int { return slices.Clone(c.lengths) }

// Extend says how many new tokens the next run brings each sequence, at most as many as its graph has positions: those
// after are padding. It is an error if there is no room for them.
func (c *Cache) Extend(counts ...int) error {
	if len(counts) != c.batch {
		return fmt.Errorf("cache: there must be a count for each of %d sequences, got %d", c.batch, len(counts))
	}
	if slices.Max(counts) == 0 {
		return errors.New("cache: no sequence gets a new token: leave the run out")
	}
	for b, n := range counts {
		if n < 0 {
			return fmt.Errorf("cache: sequence %d can't get %d tokens", b, n)
		}
		if n > c.capacity-c.lengths[b] {
			return fmt.Errorf("cache: sequence %d has %d tokens, and room for %d, but gets %d more", b, c.lengths[b], c.capacity, n)
		}
	}
	copy(c.counts, counts)
	return nil
}

// Cancel takes back what Extend said, after a run that failed or that isn't to count.
func (c *Cache) Cancel() { clear(c.counts) }

// settled returns an error if there are tokens that Extend announced and Commit hasn't added.
func (c *Cache) settled() error {
	if slices.Max(c.counts) > 0 {
		return errors.New("cache: there are tokens that Extend announced: Commit or Cancel them first")
	}
	return nil
}

// Commit makes the tokens of the last run, as many as Extend said, part of the sequences.
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

// Truncate shortens each sequence to a length of at most what it has; the tokens after it are forgotten.
func (c *Cache) Truncate(lengths ...int) error {
	if len(lengths) != c.batch {
		return fmt.Errorf("cache: there must be a length for each of %d sequences, got %d", c.batch, len(lengths))
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

// Reorder makes sequence b continue as a copy of what sequence parents[b] is: as a beam search needs it. What
// cross-attention reads of the cache moves too; the nodes of a mask, such as the KeyLengths of sources, are the
// caller's to reorder.
func (c *Cache) Reorder(parents ...int) error {
	if len(parents) != c.batch {
		return fmt.Errorf("cache: there must be a parent for each of %d sequences, got %d", c.batch, len(parents))
	}
	for b, from := range parents {
		if from < 0 || from >= c.batch {
			return fmt.Errorf("cache: the parent of sequence %d must be one of %d sequences, got %d", b, c.batch, from)
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

// lengthsNode and countsNode are the cache's lengths, and the counts of the run, as nodes of shape (B).
func (c *Cache) lengthsNode(g *G.ExprGraph) (*G.Node, error) {
	return cacheNode(g, "cache.lengths", c.lengths)
}
func (c *Cache) countsNode(g *G.ExprGraph) (*G.Node, error) {
	return cacheNode(g, "cache.counts", c.counts)
}

func cacheNode(g *G.ExprGraph, name string, x []int) (*G.Node, error) {
	n, _, err := named(g, name, tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x)))
	if err != nil {
		return nil, errors.New("cache: the graph belongs to another Cache: a graph can have one")
	}
	return n, nil
}

// positions returns the positions of new tokens of shape (B, T) or (T): a node of shape (B, T).
func (c *Cache) positions(b *Build, g *G.ExprGraph, tokens tensor.Shape) (*G.Node, error) {
	batch, length := batchOf(tokens, 1), tokens[len(tokens)-1]
	if batch != c.batch {
		return nil, fmt.Errorf("cache: the tokens must be those of %d sequences, got %v", c.batch, tokens)
	}
	if length > c.capacity {
		return nil, fmt.Errorf("cache: there is room for %d tokens in a sequence, got %v", c.capacity, tokens)
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

// place is the memory of one layer for its keys or its values.
type place struct {
	made   *Param // the weight that makes them: it tells models apart
	store  *ops.Store
	memory *ops.Memory // of cross-attention, in place of the store
}

// place returns a layer's place, for keys or values that a weight makes. It is an error if another weight did so
// before, or if the graph has used the place already.
func (c *Cache) place(b *Build, name string, weight *Param) (*place, error) {
	p := c.places[name]
	if p == nil {
		p = &place{made: weight}
		c.places[name] = p
	}
	if p.made != weight {
		return nil, fmt.Errorf("cache: it holds another model's %s: a cache serves one model", name)
	}
	if b.placed == nil {
		b.placed = map[string]bool{}
	}
	if b.placed[name] {
		return nil, fmt.Errorf("cache: the layer is applied twice in one graph, but the cache has one place for its %s", name)
	}
	b.placed[name] = true
	return p, nil
}

// leastTokenBytes is what any token takes: a key and a value of one float32.
const leastTokenBytes = 8

// append stores new keys or values, (B, T, W), and returns all that there are, (B, Max, W).
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
			return nil, fmt.Errorf("cache: %s of %d sequences of %d tokens, of %d numbers each: %w", name, c.batch, c.capacity, width, err)
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

// keep stores what cross-attention reads, (B, S, W), and returns it.
func (c *Cache) keep(b *Build, name string, weight *Param, x *G.Node) (*G.Node, error) {
	if s := x.Shape(); batchOf(s, 2) != c.batch {
		return nil, fmt.Errorf("cache: the encoder's output must be that of %d sequences, got %v", c.batch, s)
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

// kept returns what keep stored last, as a node of a graph, of so many axes.
func (c *Cache) kept(b *Build, name string, weight *Param, g *G.ExprGraph, dims int) (*G.Node, error) {
	p, err := c.place(b, name, weight)
	if err != nil {
		return nil, err
	}
	if p.memory == nil {
		return nil, fmt.Errorf("cache: it holds no %s: build a graph that is given the encoder's output first", name)
	}
	lengths, err := c.lengthsNode(g)
	if err != nil {
		return nil, err
	}
	return p.memory.Read(b.Env(), lengths, weight.Value.Dtype(), dims)
}

// batchOf returns the size of the batch axis of a shape, if it has one in front of so many others, or else 1.
func batchOf(s tensor.Shape, others int) int {
	if len(s) > others {
		return s[0]
	}
	return 1
}
