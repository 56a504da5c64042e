package learn

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// maxWordCounts is the limit of the table of words for BPE, enough for about a million words of ordinary text. Learning
// needs about 30 times as many bytes.
const maxWordCounts = 1 << 24

// A wordCounts counts words in bounded memory. When its table is full, it forgets the rarest words, until half of the
// table is free. Of equally common words, it forgets the last by code points first. If such a word comes back, its
// count starts at 0. The counts depend only on the words and their order. They are exact if the table is never full.
type wordCounts struct {
	limit  int // maximum size of the table
	size   int // bytes of all words in the table, and 8 for each
	counts map[string]*int
}

func newWordCounts(limit int) *wordCounts {
	return &wordCounts{limit: limit, counts: map[string]*int{}}
}

// add counts a word.
func (c *wordCounts) add(word string) {
	n := c.counts[word] // the table has pointers, because counts[word]++ would keep the text's memory as a key
	if n == nil {
		n = new(int)
		c.counts[strings.Clone(word)] = n
		if c.size += wordSize(word); c.size > c.limit {
			*n++
			c.forget()
			return
		}
	}
	*n++
}

func wordSize(word string) int { return len(word) + 8 }

// commonest returns the words by falling counts. Of equally common words, the first by code points comes first.
func (c *wordCounts) commonest() []string {
	return slices.SortedFunc(maps.Keys(c.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(*c.counts[b], *c.counts[a]), cmp.Compare(a, b))
	})
}

// forget removes the rarest words, until the table is at most half full.
func (c *wordCounts) forget() {
	words := c.commonest()
	for c.size > c.limit/2 {
		last := words[len(words)-1]
		words = words[:len(words)-1]
		delete(c.counts, last)
		c.size -= wordSize(last)
	}
}
