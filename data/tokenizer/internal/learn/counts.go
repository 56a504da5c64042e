package learn

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// maxWordCounts bounds the table of a wordCounts. It is enough for about a million words of ordinary text. Learning
// needs about 30 times as many bytes.
const maxWordCounts = 1 << 24

// A wordCounts counts words in bounded memory. When its table is full, it forgets the rarest half; of equally common
// words, the last by code points. A word that comes back is counted anew. The counts depend only on the words and their
// order, and are exact if the table is never full.
type wordCounts struct {
	most   int // size of a full table
	size   int // of the table: bytes of the words, and 8 for each
	counts map[string]*int
}

func newWordCounts(most int) *wordCounts { return &wordCounts{most: most, counts: map[string]*int{}} }

// add counts a word.
func (c *wordCounts) add(word string) {
	n := c.counts[word] // a pointer, because counts[word]++ would keep the text's memory as the key
	if n == nil {
		n = new(int)
		c.counts[strings.Clone(word)] = n
		if c.size += wordSize(word); c.size > c.most {
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
	for c.size > c.most/2 {
		last := words[len(words)-1]
		words = words[:len(words)-1]
		delete(c.counts, last)
		c.size -= wordSize(last)
	}
}
