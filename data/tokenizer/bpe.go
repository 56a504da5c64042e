package tokenizer

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// bpe is the Tokenizer for BPE, as in GPT-2. It splits a text into pieces, and merges neighbouring tokens in each
// piece, in the order in which it learned the merges. Every byte is a token, so nothing is unknown.
type bpe struct {
	tokens []string // each token's bytes, by id
	bytes  [256]int // id of each byte
	merges []merge  // in the order of learning
	ranks  map[pair]int

	encoders sync.Pool
}

// A pair is the ids of two neighbouring tokens.
type pair struct{ left, right int }

// A merge replaces a pair with one token, whose id is id.
type merge struct {
	pair
	id int
}

// newBPE returns a tokenizer with every byte and no merges. Bytes get their ids in the order of the code points in
// byteRunes.
func newBPE() *bpe {
	t := &bpe{ranks: map[pair]int{}}
	for r := rune('!'); len(t.tokens) < 256; r++ {
		if b, ok := runeBytes[r]; ok {
			t.bytes[b] = len(t.tokens)
			t.tokens = append(t.tokens, string([]byte{b}))
		}
	}
	return t
}

// add appends a merge.
func (t *bpe) add(m merge) {
	t.ranks[m.pair] = len(t.merges)
	t.merges = append(t.merges, m)
}

func (t *bpe) Len() int                { return len(t.tokens) }
func (t *bpe) Unknown() int            { return -1 }
func (t *bpe) Special() map[string]int { return nil }

func (t *bpe) Encode(text string) ([]int, error) {
	if err := CheckUTF8(text); err != nil {
		return nil, err
	}
	e, _ := t.encoders.Get().(*bpeEncoder)
	if e == nil {
		e = &bpeEncoder{bpe: t, known: map[string][]int{}}
	}
	defer t.encoders.Put(e)
	ids := make([]int, 0, len(text)/3)
	for piece := range pieces(text) {
		ids = append(ids, e.encode(piece)...)
	}
	return ids, nil
}

func (t *bpe) Tokenize(text string, _ Options) ([]Token, error) {
	ids, err := t.Encode(text)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, len(ids))
	place := 0
	for i, id := range ids {
		start, end := place, place+len(t.tokens[id])
		place = end
		for !utf8.RuneStart(text[start]) {
			start--
		}
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		tokens[i] = Token{id, start, end}
	}
	return tokens, nil
}

// Decode returns the bytes of ids. If the ids begin or end inside a character, the text has only some of its bytes.
func (t *bpe) Decode(ids []int) (string, error) {
	var text strings.Builder
	for i, id := range ids {
		if id < 0 || id >= len(t.tokens) {
			return "", fmt.Errorf("id %d at position %d isn't one of %d tokens", id, i, len(t.tokens))
		}
		text.WriteString(t.tokens[id])
	}
	return text.String(), nil
}

// A bpeEncoder encodes one piece at a time, and caches the ids of short ones.
type bpeEncoder struct {
	*bpe
	known   map[string][]int
	ids     []int
	symbols []bpeSymbol
	queue   heap[uint64] // rank<<32 | index of the left symbol: lowest rank first, then leftmost
}

// A bpeSymbol is a token of a piece, in a linked list.
type bpeSymbol struct {
	id         int // -1 after it is merged into its left neighbour
	prev, next int // indexes, or -1
}

// mostKnown is the largest number of pieces that an encoder caches. It doesn't cache pieces with more than longestKnown
// bytes.
const mostKnown, longestKnown = 1 << 14, 32

// encode returns the ids of a piece. The next call may overwrite them.
func (e *bpeEncoder) encode(piece string) []int {
	ids, ok := e.known[piece]
	if ok {
		return ids
	}
	e.merge(piece)
	if len(piece) <= longestKnown {
		if len(e.known) >= mostKnown {
			clear(e.known)
		}
		e.known[strings.Clone(piece)] = slices.Clone(e.ids)
	}
	return e.ids
}

// merge sets e.ids to the ids of a piece, in time O(n log n) for n bytes.
func (e *bpeEncoder) merge(piece string) {
	e.ids, e.symbols, e.queue = e.ids[:0], e.symbols[:0], e.queue[:0]
	for i := range len(piece) {
		e.symbols = append(e.symbols, bpeSymbol{id: e.bytes[piece[i]], prev: i - 1, next: i + 1})
	}
	e.symbols[len(piece)-1].next = -1
	for i := range len(piece) - 1 {
		e.ask(i)
	}
	for len(e.queue) > 0 {
		first := e.queue.pop(lessUint64)
		i, m := int(first&(1<<32-1)), &e.merges[first>>32]
		left := &e.symbols[i]
		if left.id != m.left || left.next < 0 || e.symbols[left.next].id != m.right {
			continue // one of the two has been merged already
		}
		right := &e.symbols[left.next]
		left.id, left.next = m.id, right.next
		right.id = -1
		if left.next >= 0 {
			e.symbols[left.next].prev = i
			e.ask(i)
		}
		if left.prev >= 0 {
			e.ask(left.prev)
		}
	}
	for i := 0; i >= 0; i = e.symbols[i].next {
		e.ids = append(e.ids, e.symbols[i].id)
	}
}

// ask queues the merge of symbol i with the next symbol, if there is such a merge.
func (e *bpeEncoder) ask(i int) {
	left := e.symbols[i]
	if rank, ok := e.ranks[pair{left.id, e.symbols[left.next].id}]; ok {
		e.queue.push(uint64(rank)<<32|uint64(i), lessUint64)
	}
}

func lessUint64(a, b uint64) bool { return a < b }

// pieces splits a text by GPT-2's pattern. Each piece is encoded separately.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := pieceLen(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// pieceLen returns the length in bytes of the first match of GPT-2's pattern in a text that isn't empty:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+. Here \s is Unicode's White_Space, as in
// Rust; JavaScript's \s lacks U+0085 and includes U+FEFF.
func pieceLen(text string) int {
	if text[0] == '\'' {
		for _, end := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
			if strings.HasPrefix(text[1:], end) {
				return 1 + len(end)
			}
		}
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 && classOf(firstRune(text[1:])) != spaceClass {
		start = 1
	}
	class := classOf(firstRune(text[start:]))
	last, end := start, start // where the last character of the class starts and ends
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if classOf(r) != class {
			break
		}
		last, end = end, end+n
	}
	if class == spaceClass && end < len(text) && last > 0 {
		return last // the last white space belongs to the next piece
	}
	return end
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

type pieceClass int

const (
	otherClass pieceClass = iota
	letterClass
	numberClass
	spaceClass
)

func classOf(r rune) pieceClass {
	switch {
	case 'a' <= r && r <= 'z' || unicode.IsLetter(r):
		return letterClass
	case unicode.IsSpace(r):
		return spaceClass
	case unicode.IsNumber(r):
		return numberClass
	}
	return otherClass
}

// byteRunes are the characters that stand for bytes in a file. A byte that is printable in Latin-1 is its own
// character. The other bytes, in order, are the characters from U+0100 on. So printable bytes come first in the order
// of code points.
var byteRunes, runeBytes = func() (runes [256]rune, bytes map[rune]byte) {
	next := rune(256)
	bytes = map[rune]byte{}
	for b := range runes {
		switch {
		case '!' <= b && b <= '~' || '¡' <= b && b <= '¬' || '®' <= b:
			runes[b] = rune(b)
		default:
			runes[b] = next
			next++
		}
		bytes[runes[b]] = byte(b)
	}
	return runes, bytes
}()

// spell returns a token's spelling in a file.
func spell(token string) string {
	var s strings.Builder
	for i := range len(token) {
		s.WriteRune(byteRunes[token[i]])
	}
	return s.String()
}

// unspell returns the token with this spelling, and whether the spelling is valid and not empty.
func unspell(s string) (string, bool) {
	var token []byte
	for _, r := range s {
		b, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		token = append(token, b)
	}
	return string(token), len(token) > 0
}

// heap is a binary heap. Its first element is the smallest.
type heap[T any] []T

func (h *heap[T]) push(v T, less func(a, b T) bool) {
	s := append(*h, v)
	i := len(s) - 1
	for i > 0 && less(s[i], s[(i-1)/2]) {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
		i = (i - 1) / 2
	}
	*h = s
}

func (h *heap[T]) pop(less func(a, b T) bool) T {
	s := *h
	first, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if less(s[child], s[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
	return first
}
