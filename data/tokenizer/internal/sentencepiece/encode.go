package sentencepiece

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// A lattice takes, of all ways to cover a text with pieces, the one with the greatest sum of scores. It computes in
// float32 as SentencePiece does, because rounding decides between ways that are almost equal.
type lattice struct {
	*Model
	keys         *trie.Trie
	unknownScore float32
	paths        sync.Pool // of *[]latticeStep
}

// A latticeStep is the last piece of the best path to a place in a text.
type latticeStep struct {
	score float32 // of the whole path
	start int32   // where the piece starts; -1 if no path ends here
	id    int32
}

// rebase is the score, above or below 0, from which scores are counted anew from 0, so that a long text's scores keep
// their digits.
const rebase = 100000

func newLattice(m *Model, keys *trie.Trie) *lattice {
	const penalty = 10
	l := &lattice{Model: m, keys: keys}
	least := float32(math.MaxFloat32)
	for id, score := range m.scores {
		if m.Types[id] == Normal {
			least = min(least, score)
		}
	}
	l.unknownScore = least - penalty
	return l
}

func (l *lattice) Encode(tokens []pipe.Token, text string, b *pipe.Budget) []pipe.Token {
	pool, _ := l.paths.Get().(*[]latticeStep)
	if pool == nil {
		pool = new([]latticeStep)
	}
	defer l.paths.Put(pool)
	*pool = slices.Grow((*pool)[:0], len(text)+1)[:len(text)+1]
	path := *pool // path[i] ends at byte i
	for i := range path {
		path[i].start = -1
	}
	path[0] = latticeStep{}
	furthest := 0 // the last place that a path ends at
	for start := 0; start < len(text) && !b.Spent(); {
		n := 1
		if text[start] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(text[start:])
		}
		before := path[start].score
		if before < -rebase || before > rebase {
			b.Take((furthest - start) / 4)
			for i := start; i <= furthest; i++ {
				path[i].score -= before
			}
			before = 0
		}
		single := false // whether the character at start is a piece
		for node := l.keys.Child(0, text[start:]); node > 0; node = l.keys.Child(node, text[start:]) {
			b.Take(pipe.StepsOfNode)
			id, end := l.keys.Nodes[node].Value, start+int(l.keys.Nodes[node].Size)
			if id < 0 || l.Types[id] == Unused {
				continue
			}
			score := l.scores[id]
			if l.Types[id] == Defined {
				score = 0.1 * float32(end-start-1) // whatever its own score
			}
			if score += before; path[end].start < 0 || score > path[end].score {
				path[end] = latticeStep{score, int32(start), id}
			}
			single = single || end == start+n
			furthest = max(furthest, end)
		}
		if !single {
			if score := l.unknownScore + before; path[start+n].start < 0 || score > path[start+n].score {
				path[start+n] = latticeStep{score, int32(start), int32(l.unknownID)}
			}
			furthest = max(furthest, start+n)
		}
		start += n
	}
	if b.Spent() {
		return tokens
	}
	first := len(tokens)
	for end := len(text); end > 0; end = int(path[end].start) {
		tokens = append(tokens, pipe.Token{ID: int(path[end].id), Start: int(path[end].start), End: end})
	}
	slices.Reverse(tokens[first:])
	return tokens
}

// A merger starts with the characters of a text, and joins the neighbours that form the piece with the greatest score,
// the leftmost first, until no neighbours form a piece.
type merger struct {
	*Model
	ranks    []int32 // of each piece: how many greater scores there are
	byWords  bool    // no piece has ▁ after another character, so that words can be encoded by themselves
	unused   bool    // whether there are unused pieces
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
	parts   map[int32][2]string // of each unused piece: what it was last made from
}

// A mergeSymbol is a part of a text, in a linked list.
type mergeSymbol struct {
	start, end int32 // 0 and 0 after the symbol is joined to its left neighbour
	prev, next int32 // indexes, or -1
	both       int32 // id of the piece that the symbol and the next one form, or -1
	frozen     bool  // a user-defined symbol, which joins nothing
}

func newMerger(m *Model) *merger {
	r := &merger{Model: m, ranks: make([]int32, len(m.Pieces)), byWords: true, unused: slices.Contains(m.Types, Unused)}
	order := make([]int32, 0, len(m.Pieces))
	for id, piece := range m.Pieces {
		if m.ordinary(int32(id)) {
			order = append(order, int32(id))
			r.byWords = r.byWords && !strings.Contains(strings.TrimLeft(piece, spaceSymbol), spaceSymbol)
		}
	}
	r.byWords = r.byWords && !r.unused
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(m.scores[b], m.scores[a]) })
	for i, id := range order {
		r.ranks[id] = int32(i)
		if i > 0 && m.scores[id] == m.scores[order[i-1]] {
			r.ranks[id] = r.ranks[order[i-1]]
		}
	}
	return r
}

func (m *merger) Encode(tokens []pipe.Token, text string, b *pipe.Budget) []pipe.Token {
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
			tokens = append(tokens, pipe.Token{ID: int(t.Id), Start: start, End: start + int(t.Size)})
			start += int(t.Size)
		}
	}
	return tokens
}

// wordEnd returns where the word that starts at byte start of text ends: before the first ▁ after another character.
func wordEnd(text string, start int) int {
	n := start
	for strings.HasPrefix(text[n:], spaceSymbol) {
		n += len(spaceSymbol)
	}
	if i := strings.Index(text[n:], spaceSymbol); i >= 0 {
		return n + i
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
		e.ask(int32(i))
	}
	for len(e.queue) > 0 {
		first := e.queue.Pop(models.Less)
		left := &e.symbols[uint32(first)]
		if left.end == 0 || left.both < 0 || uint64(e.ranks[left.both]) != first>>32 {
			continue // a symbol has been joined since
		}
		right := &e.symbols[left.next]
		left.end, left.next = right.end, right.next
		if right.next >= 0 {
			e.symbols[right.next].prev = int32(uint32(first))
		}
		right.end = 0
		if left.prev >= 0 {
			e.ask(left.prev)
		}
		e.ask(int32(uint32(first)))
	}
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		e.put(text[e.symbols[i].start:e.symbols[i].end])
	}
	e.text = ""
}

// ask queues the piece that symbol i forms with the next symbol, if there is such a piece.
func (e *mergeEncoder) ask(i int32) {
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

// put appends the token of a piece, or the tokens of an unused piece's parts.
func (e *mergeEncoder) put(piece string) {
	id, ok := e.ids[piece]
	if !ok || !e.ordinary(id) {
		id = int32(e.unknownID)
	} else if parts, made := e.parts[id]; made && e.Types[id] == Unused {
		e.put(parts[0])
		e.put(parts[1])
		return
	}
	e.tokens = append(e.tokens, models.Part{Id: id, Size: int32(len(piece))})
}
