package layers

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// A Cache holds the keys and values that a decoder's attention layers computed for the tokens of a batch of sequences, so
// that a graph which continues them computes those of its new tokens alone. Its memory outlives graphs: one for a prompt
// may fill it, and one for a token at a time go on from there.
//
// A Decoder's graph uses the Cache of its Build. Each run is a step of three:
//
//	err := cache.Extend(counts...) // how many new tokens each sequence gets
//	err = vm.RunAll()              // stores their keys and values
//	cache.Commit()                 // they count from now on
//
// A run that failed, or wasn't committed, can be done again. A Cache serves one run at a time, graphs for evaluation and
// one model.
type Cache struct {
	batch, capacity int
	lengths, counts []int
	stores          map[string]*ops.Store
	memory          map[string]*ops.Store // of cross-attention
}

// NewCache makes an empty Cache for so many sequences, each of at most capacity tokens.
func NewCache(batch, capacity int) (*Cache, error) {
	if err := positive("cache", size{"the batch", batch}, size{"the capacity", capacity}); err != nil {
		return nil, err
	}
	return &Cache{
		batch: batch, capacity: capacity, lengths: make([]int, batch), counts: make([]int, batch),
		stores: map[string]*ops.Store{}, memory: map[string]*ops.Store{},
	}, nil
}

// Batch is the number of sequences, B, and Capacity how many tokens each can have.
func (c *Cache) Batch() int    { return c.batch }
func (c *Cache) Capacity() int { return c.capacity }

// Lengths is how many tokens of each sequence are held.
func (c *Cache) Lengths() []int { return slices.Clone(c.lengths) }

// Extend says how many new tokens the next run brings each sequence, at most as many as its graph has positions: those
// after are padding. It is an error if there is no room for them.
func (c *Cache) Extend(counts ...int) error {
	if len(counts) != c.batch {
		return fmt.Errorf("cache: there must be a count for each of %d sequences, got %d", c.batch, len(counts))
	}
	for b, n := range counts {
		if n < 0 {
			return fmt.Errorf("cache: sequence %d can't get %d tokens", b, n)
		}
		if c.lengths[b]+n > c.capacity {
			return fmt.Errorf("cache: sequence %d has %d tokens, and room for %d, but gets %d more", b, c.lengths[b], c.capacity, n)
		}
	}
	copy(c.counts, counts)
	return nil
}

// Commit makes the tokens of the last run, as many as Extend said, part of the sequences.
func (c *Cache) Commit() {
	for b, n := range c.counts {
		c.lengths[b] += n
	}
	clear(c.counts)
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
	copy(c.lengths, lengths)
	return nil
}

// Reorder makes sequence b continue as a copy of what sequence parents[b] is: as a beam search needs it.
func (c *Cache) Reorder(parents []int) error {
	if len(parents) != c.batch {
		return fmt.Errorf("cache: there must be a parent for each of %d sequences, got %d", c.batch, len(parents))
	}
	for b, from := range parents {
		if from < 0 || from >= c.batch {
			return fmt.Errorf("cache: the parent of sequence %d must be one of %d sequences, got %d", b, c.batch, from)
		}
	}
	for _, s := range c.stores {
		s.Reorder(parents, c.lengths)
	}
	for _, s := range c.memory {
		s.Reorder(parents, nil)
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
	return named(g, name, tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x)))
}

// positions are those of new tokens, whose shape is (B, T) or (T): of shape (B, T).
func (c *Cache) positions(g *G.ExprGraph, tokens tensor.Shape) (*G.Node, error) {
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
	return ops.PositionIDs(lengths, counts, tensor.Shape{batch, length})
}

// append stores new keys or values, (B, T, W), and returns all that there are, (B, Max, W).
func (c *Cache) append(name string, x *G.Node) (*G.Node, error) {
	s := x.Shape()
	width := s[len(s)-1]
	store := c.stores[name]
	if store == nil {
		store = ops.NewStore(name, x.Dtype(), c.batch, c.capacity, width)
		c.stores[name] = store
	} else if !store.Fits(x.Dtype(), c.capacity, width) {
		return nil, fmt.Errorf("cache: it holds another model's %s: a cache serves one model", name)
	}
	lengths, err := c.lengthsNode(x.Graph())
	if err != nil {
		return nil, err
	}
	counts, err := c.countsNode(x.Graph())
	if err != nil {
		return nil, err
	}
	return store.Append(x, lengths, counts)
}

// fill stores what cross-attention reads, (B, S, W), and returns it.
func (c *Cache) fill(name string, x *G.Node) (*G.Node, error) {
	s := x.Shape()
	if batchOf(s, 2) != c.batch {
		return nil, fmt.Errorf("cache: the encoder's output must be that of %d sequences, got %v", c.batch, s)
	}
	length, width := s[len(s)-2], s[len(s)-1]
	store := c.memory[name]
	if store == nil || !store.Fits(x.Dtype(), length, width) {
		store = ops.NewStore(name, x.Dtype(), c.batch, length, width)
		c.memory[name] = store
	}
	return store.Fill(x)
}

// filled is what fill stored, as a node of so many axes.
func (c *Cache) filled(g *G.ExprGraph, name string, dims int) (*G.Node, error) {
	store := c.memory[name]
	if store == nil {
		return nil, fmt.Errorf("cache: it holds no %s: build and run a graph that is given the encoder's output first", name)
	}
	return named(g, "cache."+name, store.Value(dims))
}

// batchOf is the size of the batch axis of a shape, if it has one in front of so many others, or else 1.
func batchOf(s tensor.Shape, others int) int {
	if len(s) > others {
		return s[0]
	}
	return 1
}
