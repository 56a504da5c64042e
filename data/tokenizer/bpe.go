package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// bpe is the model for byte-pair encoding. It starts with a token for each byte or each character of a piece, and
// merges neighbouring tokens, in the order in which the merges were learned.
type bpe struct {
	spelled []string         // spelling of each id
	tokens  []string         // the same or, for a byte-level vocabulary, the token's bytes
	ids     map[string]int32 // id of each of the tokens
	merges  []merge          // in the order of learning
	ranks   map[uint64]int32 // index in merges, by the key of the pair
	bytes   [256]int32       // id of each byte, or of the byte's token for byte fallback; -1 if there is none

	characters   bool   // pieces start as characters; otherwise, as bytes
	byteFallback bool   // characters without a token become their bytes
	unknownID    int    // id of other characters without a token; if it is -1, they are left out
	fuseUnknown  bool   // neighbouring unknown characters become one token
	ignoreMerges bool   // a piece that is a token stays whole, whatever the merges
	prefix       string // begins the tokens of all characters of a piece but the first
	suffix       string // ends the token of the last character of a piece

	joins  [256][256]bool // the last byte of the left token and the first byte of the right one, for each merge
	joined bool           // joins doesn't say where a piece may be cut

	encoders sync.Pool
}

// A pair is the ids of two neighbouring tokens.
type pair struct{ left, right int32 }

func (p pair) key() uint64 { return uint64(p.left)<<32 | uint64(p.right) }

// A merge replaces a pair with one token, whose id is id.
type merge struct {
	pair
	id int32
}

// add appends a merge.
func (m *bpe) add(next merge) {
	m.ranks[next.key()] = int32(len(m.merges))
	m.merges = append(m.merges, next)
	if left, right := m.tokens[next.left], m.tokens[next.right]; left != "" && right != "" {
		m.joins[left[len(left)-1]][right[0]] = true
	}
}

// cut returns the length of the first part of a piece that is encoded separately, because no merge crosses its end.
// Parts are about as long as words, so that they can be cached.
func (m *bpe) cut(piece string) int {
	const word = 16
	for i := 1; i < len(piece) && !m.joined; i++ {
		c := piece[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !m.joins[piece[i-1]][c] && (!letter || i >= word) && (!m.characters || utf8.RuneStart(c)) {
			return i
		}
	}
	return len(piece)
}

func (m *bpe) unknown() int { return m.unknownID }

func (m *bpe) vocabulary() []string { return m.spelled }

func (m *bpe) encode(tokens []ptoken, piece string, b *budget) ([]ptoken, error) {
	e, _ := m.encoders.Get().(*bpeEncoder)
	if e == nil {
		e = &bpeEncoder{bpe: m, known: pieceCache{}}
	}
	defer m.encoders.Put(e)
	if m.ignoreMerges {
		if id, ok := m.ids[piece]; ok {
			return append(tokens, ptoken{int(id), 0, len(piece)}), nil
		}
	}
	for start := 0; start < len(piece); {
		part := piece[start:]
		if len(part) > longestKnown || m.characters {
			part = part[:m.cut(part)]
		}
		end := start
		found := e.piece(part, b)
		if b.spent() {
			return tokens, b.err
		}
		for _, t := range found {
			tokens = append(tokens, ptoken{int(t.id), end, end + int(t.size)})
			end += int(t.size)
		}
		start += len(part)
	}
	return tokens, nil
}

// A bpeToken is a token's id, and the number of bytes of the piece that it stands for.
type bpeToken struct{ id, size int32 }

// A bpeEncoder encodes one piece at a time, and caches the tokens of short ones.
type bpeEncoder struct {
	*bpe
	known   pieceCache
	tokens  []bpeToken
	symbols []bpeSymbol
	queue   heap[uint64] // rank<<32 | index of the left symbol: lowest rank first, then leftmost
}

// A bpeSymbol is a token of a piece, in a linked list.
type bpeSymbol struct {
	bpeToken         // the id is -1 after the symbol is merged into its left neighbour
	prev, next int32 // indexes, or -1
}

// A pieceCache has the tokens of pieces that an encoder has met.
type pieceCache map[string][]bpeToken

// mostKnown is the largest number of pieces in a pieceCache. It has no pieces with more than longestKnown bytes or
// tokens.
const mostKnown, longestKnown = 1 << 15, 32

// put adds copies of a short piece and its tokens.
func (c pieceCache) put(piece string, tokens []bpeToken) {
	if len(piece) > longestKnown || len(tokens) > longestKnown {
		return
	}
	if len(c) >= mostKnown {
		clear(c)
	}
	c[strings.Clone(piece)] = slices.Clone(tokens)
}

// piece returns the tokens of a piece, or of a part of one. The next call may overwrite them.
func (e *bpeEncoder) piece(piece string, b *budget) []bpeToken {
	tokens, ok := e.known[piece]
	if ok {
		return tokens
	}
	if e.merge(piece, b); !b.spent() {
		e.known.put(piece, e.tokens)
	}
	return e.tokens
}

// start sets e.symbols to the tokens of the piece's bytes or characters.
func (e *bpeEncoder) start(piece string, b *budget) {
	put := func(id, size int32) {
		n := int32(len(e.symbols))
		e.symbols = append(e.symbols, bpeSymbol{bpeToken{id, size}, n - 1, n + 1})
	}
	if !e.characters {
		for i := range len(piece) {
			put(e.bytes[piece[i]], 1)
		}
		return
	}
	unknown := int32(0) // bytes of unknown characters to be put as one token
	flush := func() {
		if unknown > 0 && e.unknownID >= 0 {
			put(int32(e.unknownID), unknown)
		}
		unknown = 0
	}
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		symbol, start := piece[i:i+n], 0 // where the character starts in the symbol
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
			b.take(stepsOfMerge * (len(symbol) - n))
			for j := 0; j < len(symbol) && b.fits(len(e.symbols)-len(piece)); j++ {
				size := int32(0) // the prefix and the suffix are no part of the piece
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
func (e *bpeEncoder) merge(piece string, b *budget) {
	e.tokens, e.queue, e.symbols = e.tokens[:0], e.queue[:0], e.symbols[:0]
	if b.take(stepsOfMerge * len(piece)); b.spent() {
		return
	}
	e.start(piece, b)
	if len(e.symbols) == 0 {
		return
	}
	e.symbols[len(e.symbols)-1].next = -1
	for i := range len(e.symbols) - 1 {
		e.ask(int32(i))
	}
	for len(e.queue) > 0 {
		first := e.queue.pop(lessUint64)
		i, m := int32(first&(1<<32-1)), &e.merges[first>>32]
		left := &e.symbols[i]
		if left.id != m.left || left.next < 0 || e.symbols[left.next].id != m.right {
			continue // one of the two has been merged already
		}
		right := &e.symbols[left.next]
		left.id, left.size, left.next = m.id, left.size+right.size, right.next
		right.id = -1
		if left.next >= 0 {
			e.symbols[left.next].prev = i
			e.ask(i)
		}
		if left.prev >= 0 {
			e.ask(left.prev)
		}
	}
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		if e.symbols[i].id >= 0 {
			e.tokens = append(e.tokens, e.symbols[i].bpeToken)
		}
	}
}

// ask queues the merge of symbol i with the next symbol, if there is such a merge.
func (e *bpeEncoder) ask(i int32) {
	left := e.symbols[i]
	if rank, ok := e.ranks[pair{left.id, e.symbols[left.next].id}.key()]; ok {
		e.queue.push(uint64(rank)<<32|uint64(i), lessUint64)
	}
}
