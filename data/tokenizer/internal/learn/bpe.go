package learn

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/patterns"
)

// longestPiece is the maximum length of a word in bytes. Training splits longer pieces into several words.
const longestPiece = 256

// A BPE is a byte-level vocabulary. It has a token for each byte, and one for each merge unless another merge has
// made the same token.
type BPE struct {
	Tokens []string
	ids    map[string]int32 // id of each of the tokens
	Pairs  []models.Pair    // the pairs that the merges join, in the order of learning
}

// NewBPE returns a vocabulary with every byte and no merges. Bytes get their ids in the order of their spellings.
func NewBPE() *BPE {
	v := &BPE{ids: map[string]int32{}}
	for r := '!'; len(v.Tokens) < 256; r++ {
		if token, ok := models.Unspell(string(r)); ok {
			v.add(token)
		}
	}
	return v
}

// add appends a token to the vocabulary.
func (v *BPE) add(token string) {
	v.ids[token] = int32(len(v.Tokens))
	v.Tokens = append(v.Tokens, token)
}

// Merge appends a merge of two tokens, and returns the id of the joined token.
func (v *BPE) Merge(p models.Pair) int32 {
	token := v.Tokens[p.Left] + v.Tokens[p.Right]
	if _, ok := v.ids[token]; !ok {
		v.add(token)
	}
	v.Pairs = append(v.Pairs, p)
	return v.ids[token]
}

// A word is a piece of the texts, and how often it occurs.
type word struct {
	ids   []int32
	count int
}

// A training repeatedly merges the most common pair of tokens in the words.
type training struct {
	*BPE
	words     []word
	counts    map[models.Pair]int   // how often each pair occurs in all texts
	wordsWith map[models.Pair][]int // for each pair: indexes of the words that have it, or had it before a merge
	queue     models.Heap[pairCount]
}

type pairCount struct {
	models.Pair
	count int
}

// commoner orders pairs for merging: the most common first, then the lowest ids.
func commoner(a, b pairCount) bool {
	return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.Left, b.Left), cmp.Compare(a.Right, b.Right)) < 0
}

// TrainBPE learns a vocabulary of at most size tokens from texts. It returns nil if the texts are empty.
func TrainBPE(texts iter.Seq[string], size int) *BPE {
	t := training{BPE: NewBPE(), counts: map[models.Pair]int{}, wordsWith: map[models.Pair][]int{}}
	if t.read(texts, maxWordCounts); len(t.words) == 0 {
		return nil
	}
	for p, n := range t.counts {
		t.queue.Push(pairCount{p, n}, commoner)
	}
	for len(t.Tokens) < size && len(t.queue) > 0 {
		next := t.queue.Pop(commoner)
		switch n := t.counts[next.Pair]; {
		case n != next.count && n > 0: // its count has changed since it was queued
			t.queue.Push(pairCount{next.Pair, n}, commoner)
		case n == next.count && n > 1: // a pair that occurs once isn't worth a token
			t.merge(next.Pair)
		}
	}
	return t.BPE
}

// read collects the words of the texts and counts their pairs. The argument limit bounds the table of words: see
// wordCounts.
func (t *training) read(texts iter.Seq[string], limit int) {
	words := newWordCounts(limit)
	for text := range texts {
		for piece := range patterns.Pieces(text) {
			for piece != "" {
				part := piece[:min(len(piece), longestPiece)]
				words.add(part)
				piece = piece[len(part):]
			}
		}
	}
	var byteIDs [256]int32
	for b := range byteIDs {
		byteIDs[b] = t.ids[string([]byte{byte(b)})]
	}
	for _, piece := range slices.Sorted(maps.Keys(words.counts)) {
		w := word{count: *words.counts[piece]}
		for i := range len(piece) {
			w.ids = append(w.ids, byteIDs[piece[i]])
			if i > 0 {
				t.count(models.Pair{Left: w.ids[i-1], Right: w.ids[i]}, w.count, len(t.words))
			}
		}
		t.words = append(t.words, w)
	}
}

// count records that a word has a pair. The word occurs n times in the texts.
func (t *training) count(p models.Pair, n, word int) {
	t.counts[p] += n
	if words := t.wordsWith[p]; len(words) == 0 || words[len(words)-1] != word {
		t.wordsWith[p] = append(words, word)
	}
}

// merge replaces a pair by one token in all words.
func (t *training) merge(p models.Pair) {
	id := t.Merge(p)
	made := map[models.Pair]bool{}
	for _, i := range t.wordsWith[p] {
		w := &t.words[i]
		ids := w.ids[:0]
		for j := 0; j < len(w.ids); j++ {
			if w.ids[j] != p.Left || j+1 == len(w.ids) || w.ids[j+1] != p.Right {
				ids = append(ids, w.ids[j])
				continue
			}
			if n := len(ids); n > 0 {
				t.counts[models.Pair{Left: ids[n-1], Right: p.Left}] -= w.count
				t.count(models.Pair{Left: ids[n-1], Right: id}, w.count, i)
				made[models.Pair{Left: ids[n-1], Right: id}] = true
			}
			j++
			if j+1 < len(w.ids) {
				t.counts[models.Pair{Left: p.Right, Right: w.ids[j+1]}] -= w.count
				t.count(models.Pair{Left: id, Right: w.ids[j+1]}, w.count, i)
				made[models.Pair{Left: id, Right: w.ids[j+1]}] = true
			}
			ids = append(ids, id)
		}
		w.ids = ids
	}
	delete(t.counts, p)
	delete(t.wordsWith, p)
	for q := range made {
		t.queue.Push(pairCount{q, t.counts[q]}, commoner)
	}
}
