package score

import "unicode"

// ngrams counts the n-grams of one answer that are in its references, too. It holds the answer's n-grams as a tree in
// which each is the child of the one that is shorter by its last unit, so that looking one up takes a step for each
// length, and no n-gram is ever made.
type ngrams struct {
	longest int
	child   map[uint64]uint32 // by the parent's node and a unit
	length  []int             // of the n-gram of each node; node 0 is the root, of none
	answer  []int             // how often each is in the answer
	other   []int             // and in a reference
}

// large is how many nodes are too many for clearing to be cheap for every short answer after a long one.
const large = 1 << 12

// index takes the n-grams of an answer.
func (g *ngrams) index(units []uint32) {
	if g.child == nil || len(g.child) > large {
		g.child = map[uint64]uint32{}
	}
	clear(g.child)
	g.length, g.answer = append(g.length[:0], 0), append(g.answer[:0], 0)
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
}

// count returns how often each n-gram of the answer is in a reference, by its node, until the next call.
func (g *ngrams) count(units []uint32) []int {
	g.other = append(g.other[:0], make([]int, len(g.length))...)
	for i := range units {
		node := uint32(0)
		for _, unit := range units[i:min(i+g.longest, len(units))] {
			next, ok := g.child[uint64(node)<<32|uint64(unit)]
			if !ok {
				break // nor is a longer one
			}
			g.other[next]++
			node = next
		}
	}
	return g.other
}

// matches adds, for each length less 1, the n-grams that the answer and a count have in common.
func (g *ngrams) matches(to []int, count []int) {
	for node := 1; node < len(g.length); node++ {
		to[g.length[node]-1] += min(g.answer[node], count[node])
	}
}

// isSpace is what sacreBLEU takes for white space, as Python does.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
