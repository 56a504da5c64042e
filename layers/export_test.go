package layers

import G "gorgonia.org/gorgonia"

// Spoil makes b fill freed memory with NaN, in float32 and float64. An op that reads freed memory then returns NaN.
func (b *Buffers) Spoil() {
	b.memory.Freed = func(words []uint64) {
		for i := range words {
			words[i] = ^uint64(0)
		}
	}
}

// Heads normalises each head of x: see forwardHeads.
func (n *Norm) Heads(b *Build, x *G.Node, heads int) (*G.Node, error) {
	return n.forwardHeads(b, x, heads)
}

// Cached and Memory are attention to the keys and values in a Cache: see forwardCached and forwardMemory.
func (a *MultiHeadAttention) Cached(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	return a.forwardCached(b, x, m)
}

func (a *MultiHeadAttention) Memory(b *Build, query, memory *G.Node, m Mask) (*G.Node, error) {
	return a.forwardMemory(b, query, memory, m)
}

// Bytes returns the memory of the stored keys and values.
func (c *Cache) Bytes() int { return c.bytes }
