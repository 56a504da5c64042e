// Package trie finds keys that a text begins with. A Trie holds the tokens of a vocabulary. A Charsmap holds the rules
// of a SentencePiece model, in the file's own format.
package trie

import (
	"cmp"
	"slices"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// A Trie finds the keys that a text begins with. It has a node wherever a key ends and wherever keys differ, so there
// are at most two nodes per key, however long the keys are.
type Trie struct {
	keys  []string
	Nodes []Node     // node 0 is the root; the children of a node are consecutive and sorted by their byte
	bytes []byte     // for each node: the first byte after its parent's text
	Root  [256]int32 // child of the root by its byte, or 0
}

// A Node stands for the first Size bytes of some keys.
type Node struct {
	Size  int32
	key   int32 // index of one of those keys
	Value int32 // index of the key that ends here, or -1
	first int32 // first child; the children end before the first child of the next node
}

// New returns a Trie of keys. The value of a key is its index. New leaves out empty keys. Of equal keys, the last one
// counts. The Trie uses the slice of keys, so don't change it.
func New(keys []string) *Trie {
	order := make([]int32, 0, len(keys))
	for i, key := range keys {
		if key != "" {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b)) })
	// Nodes are numbered in the order of a breadth-first walk, so that the children of a node are consecutive.
	size := len(order) + 2
	t := &Trie{keys: keys, Nodes: make([]Node, 0, size), bytes: make([]byte, 0, size)}
	groups := make([][2]int32, 0, size) // for each node: the range of order with the keys that begin with its text
	t.Nodes, t.bytes, groups = append(t.Nodes, Node{Value: -1}), append(t.bytes, 0), append(groups, [2]int32{0, int32(len(order))})
	for i := 0; i < len(t.Nodes); i++ {
		node, start, end := &t.Nodes[i], groups[i][0], groups[i][1]
		group := order[start:end]
		node.first = int32(len(t.Nodes))
		if len(group) > 0 {
			node.key = group[0]
		}
		size := node.Size
		for len(group) > 0 && int32(len(keys[group[0]])) == size {
			node.Value = group[0]
			group = group[1:]
		}
		for len(group) > 0 {
			b, n := keys[group[0]][size], 1
			for n < len(group) && keys[group[n]][size] == b {
				n++
			}
			first, last, common := keys[group[0]], keys[group[n-1]], size+1
			for int(common) < len(first) && first[common] == last[common] {
				common++
			}
			if size == 0 {
				t.Root[b] = int32(len(t.Nodes))
			}
			t.Nodes, t.bytes = append(t.Nodes, Node{Size: common, Value: -1}), append(t.bytes, b)
			groups = append(groups, [2]int32{end - int32(len(group)), end - int32(len(group)-n)})
			group = group[n:]
		}
	}
	t.Nodes = append(t.Nodes, Node{first: int32(len(t.Nodes))})
	return t
}

// Child returns the child of a node if text begins with the child's bytes. Otherwise, it returns 0. The text must begin
// with the node's own bytes.
func (t *Trie) Child(node int32, text string) int32 {
	size := t.Nodes[node].Size
	if int(size) >= len(text) {
		return 0
	}
	b := text[size]
	child := t.Root[b]
	if node > 0 {
		child = t.find(t.Nodes[node].first, t.Nodes[node+1].first, b)
	}
	if child == 0 {
		return 0
	}
	c := &t.Nodes[child]
	if c.Size > size+1 && (int(c.Size) > len(text) || t.keys[c.key][size+1:c.Size] != text[size+1:c.Size]) {
		return 0
	}
	return child
}

// find returns the node with byte b among the nodes from low to before high, or 0 if there is none.
func (t *Trie) find(low, high int32, b byte) int32 {
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
			return low
		}
	}
	return 0
}

// Longest returns the length and the value of the longest key that text begins with. If there is none, it returns 0 and
// -1.
func (t *Trie) Longest(text string, b *pipe.Budget) (n int, value int32) {
	value = -1
	for node := t.Child(0, text); node > 0; node = t.Child(node, text) {
		b.Take(pipe.StepsOfNode)
		if c := &t.Nodes[node]; c.Value >= 0 {
			n, value = int(c.Size), c.Value
		}
	}
	return n, value
}
