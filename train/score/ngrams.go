package score

import "unicode"

// ngrams counts the n-grams of one answer, and how often they occur in its references. It holds the answer's n-grams in
// a tree: a node's children are the n-grams that have one more unit. A lookup takes one step per unit, and no n-gram
// needs a slice or string of its own.
type ngrams struct {
	longest int
	child   map[uint64]uint32 // each node's children; a key has the node (high 32 bits) and the next unit
	length  []int             // length of each node's n-gram; node 0 is the root, with length 0
	answer  []int             // how often the answer has each node's n-gram
}

// ngramsOf returns the answer's n-grams, up to the longest.
func ngramsOf(units []uint32, longest int) *ngrams {
	g := &ngrams{longest: longest, child: make(map[uint64]uint32, longest*len(units)), length: []int{0}, answer: []int{0}}
	for i := range units {
		node := uint32(0)
		for n, unit := range units[i:min(i+g.longest, len(units))] {
			key := uint64(node)<<32 | uint64(unit)
			next, ok := g.child[key]
			if !ok {
				next = uint32(len(g.length))
				g.child[key] = next
				g.length, g.answer = append(g.length, n+1), append(g.answer, 0)
			}
			g.answer[next]++
			node = next
		}
	}
	return g
}

// count returns how often each n-gram of the answer occurs in a reference, by node.
func (g *ngrams) count(units []uint32) []int {
	counts := make([]int, len(g.length))
	for i := range units {
		node := uint32(0)
		for _, unit := range units[i:min(i+g.longest, len(units))] {
			next, ok := g.child[uint64(node)<<32|uint64(unit)]
			if !ok {
				break // the answer has no longer n-gram with this beginning either
			}
			counts[next]++
			node = next
		}
	}
	return counts
}

// matches adds the number of matches of each length to sums[length−1]. The argument count is the result of g.count for
// a reference.
func (g *ngrams) matches(sums []int, count []int) {
	for node := 1; node < len(g.length); node++ {
		sums[g.length[node]-1] += min(g.answer[node], count[node])
	}
}

// isSpace reports whether r is white space in Python, and so in sacreBLEU.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
