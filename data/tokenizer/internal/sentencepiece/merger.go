package sentencepiece

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// A merger encodes a text with BPE. It starts with the characters of the text. Again and again, it joins the two
// neighbours that form the piece with the greatest score, the leftmost ones of several, until no neighbours form a
// piece.
type merger struct {
	*File
	defined  *trie.Trie // user-defined symbols, or nil
	ranks    []int32    // for each piece: how many pieces have a greater score
	byWords  bool       // each word can be encoded by itself, because no piece has ▁ after another character
	unused   bool       // whether there are unused pieces
	encoders sync.Pool
}

// A mergeEncoder encodes one text at a time, and caches short words.
type mergeEncoder struct {
	*merger
	known   models.Cache
	tokens  []models.Part
	text    string
	symbols []mergeSymbol
	queue   models.Heap[uint64] // rank<<32 | index of the left symbol
	parts   map[int32][2]string // for each unused piece: the two parts that last formed it
}

// A mergeSymbol is a part of a text, in a linked list.
type mergeSymbol struct {
	start, end int32 // both are 0 after the symbol is joined to its left neighbour
	prev, next int32 // indexes, or -1
	both       int32 // id of the piece that the symbol and the next one form, or -1
	frozen     bool  // a user-defined symbol, which joins nothing
}

func newMerger(f *File, defined *trie.Trie) *merger {
	r := &merger{File: f, defined: defined, ranks: make([]int32, len(f.Pieces)), byWords: true, unused: slices.Contains(f.Types, Unused)}
	order := make([]int32, 0, len(f.Pieces))
	for id, piece := range f.Pieces {
		if f.ordinary(int32(id)) {
			order = append(order, int32(id))
			r.byWords = r.byWords && !strings.Contains(strings.TrimLeft(piece, spaceSymbol), spaceSymbol)
		}
	}
	r.byWords = r.byWords && !r.unused
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(f.scores[b], f.scores[a]) })
	for i, id := range order {
		r.ranks[id] = int32(i)
		if i > 0 && f.scores[id] == f.scores[order[i-1]] {
			r.ranks[id] = r.ranks[order[i-1]]
		}
	}
	return r
}

// encode appends the tokens of a text, until the budget is spent.
func (m *merger) encode(tokens []pipe.Token, text string, b *pipe.Budget) []pipe.Token {
	e, _ := m.encoders.Get().(*mergeEncoder)
	if e == nil {
		e = &mergeEncoder{merger: m, known: models.Cache{}}
	}
	defer m.encoders.Put(e)
	start := 0
	for start < len(text) && !b.Spent() {
		end := len(text)
		if m.byWords {
			end = wordEnd(text, start)
		}
		for _, t := range e.word(text[start:end], b) {
			tokens = append(tokens, pipe.Token{ID: int(t.ID), Start: start, End: start + int(t.Size)})
			start += int(t.Size)
		}
	}
	return tokens
}

// wordEnd returns where the word that starts at byte start of text ends: before the first ▁ after another character.
func wordEnd(text string, start int) int {
	letters := start // where the characters after the first ▁ begin
	for strings.HasPrefix(text[letters:], spaceSymbol) {
		letters += len(spaceSymbol)
	}
	if i := strings.Index(text[letters:], spaceSymbol); i >= 0 {
		return letters + i
	}
	return len(text)
}

// word returns the tokens of a word. The next call may overwrite them.
func (e *mergeEncoder) word(word string, b *pipe.Budget) []models.Part {
	tokens, ok := e.known[word]
	if ok {
		return tokens
	}
	if e.merge(word, b); !b.Spent() {
		e.known.Put(word, e.tokens)
	}
	return e.tokens
}

// merge sets e.tokens to the tokens of a text, in time O(n log n) for n bytes.
func (e *mergeEncoder) merge(text string, b *pipe.Budget) {
	e.text, e.tokens, e.symbols, e.queue = text, e.tokens[:0], e.symbols[:0], e.queue[:0]
	clear(e.parts)
	if b.Take(pipe.StepsOfMerge * len(text)); b.Spent() {
		return
	}
	for i := 0; i < len(text); {
		n, frozen := 0, false
		if e.defined != nil {
			n, _ = e.defined.Longest(text[i:], b)
			frozen = n > 0
		}
		if !frozen {
			_, n = utf8.DecodeRuneInString(text[i:])
		}
		k := int32(len(e.symbols))
		e.symbols = append(e.symbols, mergeSymbol{int32(i), int32(i + n), k - 1, k + 1, -1, frozen})
		i += n
	}
	e.symbols[len(e.symbols)-1].next = -1
	for i := range e.symbols {
		e.enqueue(int32(i))
	}
	for len(e.queue) > 0 {
		entry := e.queue.Pop(models.Less)
		left := &e.symbols[uint32(entry)]
		if left.end == 0 || left.both < 0 || uint64(e.ranks[left.both]) != entry>>32 {
			continue // one of the symbols has been joined since the entry was queued
		}
		right := &e.symbols[left.next]
		left.end, left.next = right.end, right.next
		if right.next >= 0 {
			e.symbols[right.next].prev = int32(uint32(entry))
		}
		right.end = 0
		if left.prev >= 0 {
			e.enqueue(left.prev)
		}
		e.enqueue(int32(uint32(entry)))
	}
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		e.put(text[e.symbols[i].start:e.symbols[i].end])
	}
	e.text = ""
}

// enqueue queues the piece that symbol i forms with the next symbol, if there is such a piece.
func (e *mergeEncoder) enqueue(i int32) {
	left := &e.symbols[i]
	left.both = -1
	if left.next < 0 || left.frozen || e.symbols[left.next].frozen {
		return
	}
	right := e.symbols[left.next]
	id, ok := e.ids[e.text[left.start:right.end]]
	if !ok || !e.ordinary(id) {
		return
	}
	left.both = id
	e.queue.Push(uint64(e.ranks[id])<<32|uint64(i), models.Less)
	if e.unused && e.Types[id] == Unused {
		if e.parts == nil {
			e.parts = map[int32][2]string{}
		}
		e.parts[id] = [2]string{e.text[left.start:left.end], e.text[right.start:right.end]}
	}
}

// put appends the token of a piece. For an unused piece, it appends the tokens of its two parts.
func (e *mergeEncoder) put(piece string) {
	id, ok := e.ids[piece]
	if !ok || !e.ordinary(id) {
		id = int32(e.unknownID)
	} else if parts, made := e.parts[id]; made && e.Types[id] == Unused {
		e.put(parts[0])
		e.put(parts[1])
		return
	}
	e.tokens = append(e.tokens, models.Part{ID: id, Size: int32(len(piece))})
}
