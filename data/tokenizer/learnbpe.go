package tokenizer

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// longestPiece is the maximum length of a word in bytes. Training splits longer pieces into several words.
const longestPiece = 256

// A learnedBPE is a byte-level vocabulary. It has a token for each byte, and one for each merge unless another merge has
// made the same token.
type learnedBPE struct {
	tokens []string
	ids    map[string]int32 // id of each of the tokens
	pairs  []pair           // what the merges join, in the order of learning
}

// newLearnedBPE returns a vocabulary with every byte and no merges. Bytes get their ids in the order of their spellings.
func newLearnedBPE() *learnedBPE {
	v := &learnedBPE{ids: map[string]int32{}}
	for r := '!'; len(v.tokens) < 256; r++ {
		if token, ok := unspell(string(r)); ok {
			v.add(token)
		}
	}
	return v
}

// add appends a token to the vocabulary.
func (v *learnedBPE) add(token string) {
	v.ids[token] = int32(len(v.tokens))
	v.tokens = append(v.tokens, token)
}

// learn appends a merge of two tokens, and returns the id of the joined token.
func (v *learnedBPE) learn(p pair) int32 {
	token := v.tokens[p.left] + v.tokens[p.right]
	if _, ok := v.ids[token]; !ok {
		v.add(token)
	}
	v.pairs = append(v.pairs, p)
	return v.ids[token]
}

// A bpeWord is a piece of the texts, and how often it occurs.
type bpeWord struct {
	ids   []int32
	count int
}

// A bpeTraining repeatedly merges the most common pair of tokens in the words.
type bpeTraining struct {
	*learnedBPE
	words     []bpeWord
	counts    map[pair]int   // number of occurrences of each pair in all words
	wordsWith map[pair][]int // indexes of the words that have, or had, each pair
	queue     heap[pairCount]
}

type pairCount struct {
	pair
	count int
}

// commoner orders pairs for merging: the most common first, then the lowest ids.
func commoner(a, b pairCount) bool {
	return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right)) < 0
}

// learnBPE learns a vocabulary of at most size tokens from texts. It returns nil if the texts are empty.
func learnBPE(texts iter.Seq[string], size int) *learnedBPE {
	t := bpeTraining{learnedBPE: newLearnedBPE(), counts: map[pair]int{}, wordsWith: map[pair][]int{}}
	if t.read(texts, maxWordCounts); len(t.words) == 0 {
		return nil
	}
	for p, n := range t.counts {
		t.queue.push(pairCount{p, n}, commoner)
	}
	for len(t.tokens) < size && len(t.queue) > 0 {
		next := t.queue.pop(commoner)
		switch n := t.counts[next.pair]; {
		case n != next.count && n > 0: // its count has changed since it was queued
			t.queue.push(pairCount{next.pair, n}, commoner)
		case n == next.count && n > 1: // a pair that occurs once isn't worth a token
			t.merge(next.pair)
		}
	}
	return t.learnedBPE
}

// read collects the words of the texts and counts their pairs. The argument limit is the size of the full table of
// words: see wordCounts.
func (t *bpeTraining) read(texts iter.Seq[string], limit int) {
	words := newWordCounts(limit)
	for text := range texts {
		for piece := range pieces(text) {
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
		w := bpeWord{count: *words.counts[piece]}
		for i := range len(piece) {
			w.ids = append(w.ids, byteIDs[piece[i]])
			if i > 0 {
				t.count(pair{w.ids[i-1], w.ids[i]}, w.count, len(t.words))
			}
		}
		t.words = append(t.words, w)
	}
}

// count records that a word has a pair. The word occurs n times in the texts.
func (t *bpeTraining) count(p pair, n, word int) {
	t.counts[p] += n
	if words := t.wordsWith[p]; len(words) == 0 || words[len(words)-1] != word {
		t.wordsWith[p] = append(words, word)
	}
}

// merge replaces a pair by one token in all words.
func (t *bpeTraining) merge(p pair) {
	id := t.learn(p)
	made := map[pair]bool{}
	for _, i := range t.wordsWith[p] {
		w := &t.words[i]
		ids := w.ids[:0]
		for j := 0; j < len(w.ids); j++ {
			if w.ids[j] != p.left || j+1 == len(w.ids) || w.ids[j+1] != p.right {
				ids = append(ids, w.ids[j])
				continue
			}
			if n := len(ids); n > 0 {
				t.counts[pair{ids[n-1], p.left}] -= w.count
				t.count(pair{ids[n-1], id}, w.count, i)
				made[pair{ids[n-1], id}] = true
			}
			j++
			if j+1 < len(w.ids) {
				t.counts[pair{p.right, w.ids[j+1]}] -= w.count
				t.count(pair{id, w.ids[j+1]}, w.count, i)
				made[pair{id, w.ids[j+1]}] = true
			}
			ids = append(ids, id)
		}
		w.ids = ids
	}
	delete(t.counts, p)
	delete(t.wordsWith, p)
	for q := range made {
		t.queue.push(pairCount{q, t.counts[q]}, commoner)
	}
}
