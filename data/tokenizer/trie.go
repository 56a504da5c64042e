package tokenizer

import "slices"

// A trie finds the keys that a text begins with. Its nodes are in arrays. The edges of a node are consecutive and
// sorted by their byte.
type trie struct {
	root  [256]int32 // node after the first byte, or 0
	first []int32    // index of each node's first edge; the next node's first edge ends them
	bytes []byte     // byte of each edge
	nodes []int32    // node that each edge leads to
	value []int32    // value of each node's key, or -1
}

// newTrie returns a trie of keys. The value of a key is its index. Empty keys are left out, and of equal keys, the last
// one counts.
func newTrie(keys []string) *trie {
	order := make([]int32, len(keys))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case keys[a] < keys[b]:
			return -1
		case keys[a] > keys[b]:
			return 1
		}
		return 0
	})
	for len(order) > 0 && keys[order[0]] == "" {
		order = order[1:]
	}
	// Nodes are numbered in the order of a breadth-first walk, so that the edges of a node are consecutive.
	type group struct{ keys []int32 } // keys that share a prefix
	t := &trie{}
	queue := []group{{order}}
	depth, level := 0, 1 // bytes of the prefix; number of groups left with this depth
	for len(queue) > 0 {
		g := queue[0].keys
		queue = queue[1:]
		t.first = append(t.first, int32(len(t.bytes)))
		value := int32(-1)
		for len(g) > 0 && len(keys[g[0]]) == depth {
			value = g[0]
			g = g[1:]
		}
		t.value = append(t.value, value)
		for len(g) > 0 {
			b, n := keys[g[0]][depth], 1
			for n < len(g) && keys[g[n]][depth] == b {
				n++
			}
			t.bytes = append(t.bytes, b)
			t.nodes = append(t.nodes, int32(len(t.first)+len(queue)))
			queue = append(queue, group{g[:n]})
			g = g[n:]
		}
		if level--; level == 0 {
			depth, level = depth+1, len(queue)
		}
	}
	t.first = append(t.first, int32(len(t.bytes)))
	for e := t.first[0]; e < t.first[1]; e++ {
		t.root[t.bytes[e]] = t.nodes[e]
	}
	return t
}

// step returns the node that byte b leads to, or 0.
func (t *trie) step(node int32, b byte) int32 {
	if node == 0 {
		return t.root[b]
	}
	low, high := t.first[node], t.first[node+1]
	for high-low > 8 {
		middle := (low + high) / 2
		if t.bytes[middle] <= b {
			low = middle
		} else {
			high = middle
		}
	}
	for ; low < high; low++ {
		if t.bytes[low] == b {
			return t.nodes[low]
		}
	}
	return 0
}

// longest returns the length and the value of the longest key that text begins with, or 0 and -1.
func (t *trie) longest(text string) (n int, value int32) {
	value = -1
	node := int32(0)
	for i := range len(text) {
		if node = t.step(node, text[i]); node == 0 {
			break
		}
		if v := t.value[node]; v >= 0 {
			n, value = i+1, v
		}
	}
	return n, value
}
