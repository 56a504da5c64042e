// Package models has the models of a tokenizer.json that turn a piece of a text into tokens: BPE, Unigram and
// WordPiece.
//
// What other packages need for BPE is here, too: Spell and Unspell for tokens that are bytes, and a Heap and a Cache.
package models

import (
	"sync"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// BPE is the model for byte-pair encoding. It starts with a token for each byte or each character of a piece. Then it
// merges neighbouring tokens. The merge that was learned first comes first.
type BPE struct {
	spelled []string         // spelling of each id
	tokens  []string         // each token's text: for a byte-level vocabulary, its bytes; otherwise, its spelling
	ids     map[string]int32 // id of each of the tokens
	Merges  []merge          // in the order of learning
	ranks   map[uint64]int32 // index in Merges, by the key of the pair
	bytes   [256]int32       // id of the token for each byte, or -1. With characters, it is a token such as <0x0A>

	characters   bool   // encoding starts with the characters of a piece, not with its bytes
	byteFallback bool   // characters without a token become their bytes
	unknownID    int    // id of characters without a token; if it is -1, these disappear
	fuseUnknown  bool   // neighbouring unknown characters become one token
	ignoreMerges bool   // a piece that is a token becomes that token without any merge
	prefix       string // begins the tokens of all characters of a piece but the first
	suffix       string // ends the token of the last character of a piece

	joins [256][256]bool // whether a merge joins a token that ends with the first byte to one that begins with the second
	uncut bool           // pieces must not be cut, whatever joins says

	encoders sync.Pool
}

// A Pair has the ids of two neighbouring tokens.
type Pair struct{ Left, Right int32 }

func (p Pair) key() uint64 { return uint64(p.Left)<<32 | uint64(p.Right) }

// A merge replaces a Pair by the token id.
type merge struct {
	Pair
	id int32
}

// add appends a merge.
func (m *BPE) add(next merge) {
	m.ranks[next.key()] = int32(len(m.Merges))
	m.Merges = append(m.Merges, next)
	if left, right := m.tokens[next.Left], m.tokens[next.Right]; left != "" && right != "" {
		m.joins[left[len(left)-1]][right[0]] = true
	}
}

// cut returns the length of the first part of a piece. No merge crosses the end of the part, so that it can be encoded
// separately. Parts are about as long as words, so that they can be cached.
func (m *BPE) cut(piece string) int {
	const word = 16
	for i := 1; i < len(piece) && !m.uncut; i++ {
		c := piece[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !m.joins[piece[i-1]][c] && (!letter || i >= word) && (!m.characters || utf8.RuneStart(c)) {
			return i
		}
	}
	return len(piece)
}

// Unknown returns the id of characters without a token, or -1.
func (m *BPE) Unknown() int { return m.unknownID }

// Vocabulary returns the spellings of the tokens by their ids.
func (m *BPE) Vocabulary() []string { return m.spelled }

// Encode appends the tokens of a piece.
func (m *BPE) Encode(tokens []pipe.Token, piece string, b *pipe.Budget) ([]pipe.Token, error) {
	e, _ := m.encoders.Get().(*bpeEncoder)
	if e == nil {
		e = &bpeEncoder{BPE: m, known: Cache{}}
	}
	defer m.encoders.Put(e)
	if m.ignoreMerges {
		if id, ok := m.ids[piece]; ok {
			return append(tokens, pipe.Token{ID: int(id), Start: 0, End: len(piece)}), nil
		}
	}
	for start := 0; start < len(piece); {
		part := piece[start:]
		if len(part) > maxCachedLen || m.characters {
			part = part[:m.cut(part)]
		}
		end := start
		found := e.piece(part, b)
		if b.Spent() {
			return tokens, b.Err
		}
		for _, t := range found {
			tokens = append(tokens, pipe.Token{ID: int(t.ID), Start: end, End: end + int(t.Size)})
			end += int(t.Size)
		}
		start += len(part)
	}
	return tokens, nil
}

// A bpeEncoder encodes one piece at a time.
type bpeEncoder struct {
	*BPE
	known   Cache
	tokens  []Part
	symbols []bpeSymbol
	queue   Heap[uint64] // rank<<32 | index of the left symbol, so that the lowest rank comes first, and then the leftmost symbol
}

// A bpeSymbol is an element of a linked list: a token of the piece.
type bpeSymbol struct {
	Part             // the id is -1 after the symbol is merged into its left neighbour
	prev, next int32 // indexes, or -1
}

// piece returns the tokens of a piece, or of a part of one. The next call may overwrite them.
func (e *bpeEncoder) piece(piece string, b *pipe.Budget) []Part {
	tokens, ok := e.known[piece]
	if ok {
		return tokens
	}
	if e.merge(piece, b); !b.Spent() {
		e.known.Put(piece, e.tokens)
	}
	return e.tokens
}

// start sets e.symbols to the tokens that encoding starts with.
func (e *bpeEncoder) start(piece string, b *pipe.Budget) {
	put := func(id, size int32) {
		n := int32(len(e.symbols))
		e.symbols = append(e.symbols, bpeSymbol{Part{id, size}, n - 1, n + 1})
	}
	if !e.characters {
		for i := range len(piece) {
			put(e.bytes[piece[i]], 1)
		}
		return
	}
	unknown := int32(0) // bytes of the unknown characters that will become the next token
	flush := func() {
		if unknown > 0 && e.unknownID >= 0 {
			put(int32(e.unknownID), unknown)
		}
		unknown = 0
	}
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		symbol, start := piece[i:i+n], 0 // the character starts at byte start of the symbol
		if i > 0 && e.prefix != "" {
			symbol, start = e.prefix+symbol, len(e.prefix)
		}
		if i += n; i == len(piece) {
			symbol += e.suffix
		}
		id, ok := e.ids[symbol]
		switch {
		case ok:
			flush()
			put(id, int32(n))
		case e.byteFallback && e.hasBytes(symbol):
			b.Take(pipe.StepsOfMerge * (len(symbol) - n))
			for j := 0; j < len(symbol) && b.Fits(len(e.symbols)-len(piece)); j++ {
				size := int32(0) // for a byte of the prefix or the suffix, which aren't in the piece
				if start <= j && j < start+n {
					size = 1
				}
				put(e.bytes[symbol[j]], size)
			}
		default:
			if !e.fuseUnknown {
				flush()
			}
			unknown += int32(n)
		}
	}
	flush()
}

// hasBytes reports whether each byte of s has a token.
func (e *bpeEncoder) hasBytes(s string) bool {
	for i := range len(s) {
		if e.bytes[s[i]] < 0 {
			return false
		}
	}
	return true
}

// merge sets e.tokens to the tokens of a piece, in time O(n log n) for n bytes.
func (e *bpeEncoder) merge(piece string, b *pipe.Budget) {
	e.tokens, e.queue, e.symbols = e.tokens[:0], e.queue[:0], e.symbols[:0]
	if b.Take(pipe.StepsOfMerge * len(piece)); b.Spent() {
		return
	}
	e.start(piece, b)
	if len(e.symbols) == 0 {
		return
	}
	e.symbols[len(e.symbols)-1].next = -1
	for i := range len(e.symbols) - 1 {
		e.enqueue(int32(i))
	}
	for len(e.queue) > 0 {
		entry := e.queue.Pop(Less)
		i, m := int32(entry&(1<<32-1)), &e.Merges[entry>>32]
		left := &e.symbols[i]
		if left.ID != m.Left || left.next < 0 || e.symbols[left.next].ID != m.Right {
			continue // one of the two symbols has been merged since the entry was queued
		}
		right := &e.symbols[left.next]
		left.ID, left.Size, left.next = m.id, left.Size+right.Size, right.next
		right.ID = -1
		if left.next >= 0 {
			e.symbols[left.next].prev = i
			e.enqueue(i)
		}
		if left.prev >= 0 {
			e.enqueue(left.prev)
		}
	}
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		if e.symbols[i].ID >= 0 {
			e.tokens = append(e.tokens, e.symbols[i].Part)
		}
	}
}

// enqueue queues the merge of symbol i with the next symbol, if there is such a merge.
func (e *bpeEncoder) enqueue(i int32) {
	left := e.symbols[i]
	if rank, ok := e.ranks[Pair{left.ID, e.symbols[left.next].ID}.key()]; ok {
		e.queue.Push(uint64(rank)<<32|uint64(i), Less)
	}
}
