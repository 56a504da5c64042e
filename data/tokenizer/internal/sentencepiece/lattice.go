package sentencepiece

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// A lattice encodes a text with Unigram. There are many ways to cover the text with pieces; the lattice takes the one
// with the greatest sum of scores. It computes in float32 like SentencePiece, because rounding decides between sums
// that are almost equal.
type lattice struct {
	*File
	keys         *trie.Trie // the pieces that a text can become
	unknownScore float32
	paths        sync.Pool // of *[]latticeStep
}

// A latticeStep is the last piece of the best path to a place in a text.
type latticeStep struct {
	score float32 // of the whole path
	start int32   // where the piece starts; -1 if no path ends here
	id    int32
}

// rebase limits the scores of paths. When a score leaves the range from -rebase to rebase, scores start from 0 again,
// so that they keep their precision in a long text.
const rebase = 100000

func newLattice(f *File, keys *trie.Trie) *lattice {
	const penalty = 10
	l := &lattice{File: f, keys: keys}
	lowest := float32(math.MaxFloat32)
	for id, score := range f.scores {
		if f.Types[id] == Normal {
			lowest = min(lowest, score)
		}
	}
	l.unknownScore = lowest - penalty
	return l
}

// encode appends the tokens of a text, until the budget is spent.
func (l *lattice) encode(tokens []pipe.Token, text string, b *pipe.Budget) []pipe.Token {
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
	furthest := 0 // the last byte where a path ends
	for start := 0; start < len(text) && !b.Spent(); {
		n := 1
		if text[start] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(text[start:])
		}
		score := path[start].score // of the path that ends at start
		if score < -rebase || score > rebase {
			b.Take((furthest - start) / 4)
			for i := start; i <= furthest; i++ {
				path[i].score -= score
			}
			score = 0
		}
		isPiece := false // whether the character at start is a piece
		for node := l.keys.Child(0, text[start:]); node > 0; node = l.keys.Child(node, text[start:]) {
			b.Take(pipe.StepsOfNode)
			id, end := l.keys.Nodes[node].Value, start+int(l.keys.Nodes[node].Size)
			if id < 0 || l.Types[id] == Unused {
				continue
			}
			added := l.scores[id]
			if l.Types[id] == Defined {
				added = 0.1 * float32(end-start-1) // instead of its own score
			}
			if longer := added + score; path[end].start < 0 || longer > path[end].score {
				path[end] = latticeStep{longer, int32(start), id}
			}
			isPiece = isPiece || end == start+n
			furthest = max(furthest, end)
		}
		if !isPiece {
			if longer := l.unknownScore + score; path[start+n].start < 0 || longer > path[start+n].score {
				path[start+n] = latticeStep{longer, int32(start), int32(l.unknownID)}
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
