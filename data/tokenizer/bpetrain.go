package tokenizer

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
)

// longestPiece is the maximum length of a word in bytes. Training splits longer pieces into several words.
const longestPiece = 256

// A bpeWord is a piece of the texts, and how often it occurs.
type bpeWord struct {
	ids   []int32
	count int
}

// A bpeTraining repeatedly merges the most common pair of tokens in the words.
type bpeTraining struct {
	*bpe
	words  []bpeWord
	counts map[pair]int   // number of occurrences of each pair in all words
	where  map[pair][]int // indexes of the words that have, or had, each pair
	queue  heap[pairCount]
}

type pairCount struct {
	pair
	count int
}

// commoner orders pairs for merging: the most common first, then the lowest ids.
func commoner(a, b pairCount) bool {
	return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right)) < 0
}

func collectBPE(texts iter.Seq[string], size int) (Tokenizer, error) {
	t := bpeTraining{bpe: newBPE(), counts: map[pair]int{}, where: map[pair][]int{}}
	if t.read(texts, maxWordCounts); len(t.words) == 0 {
		return nil, errors.New("all of them are empty")
	}
	for p, n := range t.counts {
		t.queue.push(pairCount{p, n}, commoner)
	}
	for len(t.tokens) < size && len(t.queue) > 0 {
		first := t.queue.pop(commoner)
		switch n := t.counts[first.pair]; {
		case n != first.count && n > 0: // its count has changed since it was queued
			t.queue.push(pairCount{first.pair, n}, commoner)
		case n == first.count && n > 1: // a pair that occurs once isn't worth a token
			t.merge(first.pair)
		}
	}
	content, err := bpeFile(t.bpe)
	if err != nil {
		return nil, err
	}
	return readJSON(content)
}

// read collects the words of the texts and counts their pairs. For the argument most, see wordCounts.
func (t *bpeTraining) read(texts iter.Seq[string], most int) {
	words := newWordCounts(most)
	for text := range texts {
		for piece := range pieces(text) {
			for piece != "" {
				part := piece[:min(len(piece), longestPiece)]
				words.add(part)
				piece = piece[len(part):]
			}
		}
	}
	for _, piece := range slices.Sorted(maps.Keys(words.counts)) {
		w := bpeWord{count: *words.counts[piece]}
		for i := range len(piece) {
			w.ids = append(w.ids, t.bytes[piece[i]])
			if i > 0 {
				p := pair{w.ids[i-1], w.ids[i]}
				t.count(p, w.count, len(t.words))
			}
		}
		t.words = append(t.words, w)
	}
}

// count records that a word, which occurs n times, has a pair.
func (t *bpeTraining) count(p pair, n, word int) {
	t.counts[p] += n
	if words := t.where[p]; len(words) == 0 || words[len(words)-1] != word {
		t.where[p] = append(words, word)
	}
}

// learn appends a merge of a pair, and its token unless another pair has made the same. It returns the token's id.
func (m *bpe) learn(p pair) int32 {
	token := m.tokens[p.left] + m.tokens[p.right]
	if _, ok := m.ids[token]; !ok {
		m.token(token)
	}
	id := m.ids[token]
	m.add(merge{p, id})
	return id
}

// merge replaces a pair by one token in all words.
func (t *bpeTraining) merge(p pair) {
	id := t.learn(p)
	made := map[pair]bool{}
	for _, i := range t.where[p] {
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
	delete(t.where, p)
	for q := range made {
		t.queue.push(pairCount{q, t.counts[q]}, commoner)
	}
}
