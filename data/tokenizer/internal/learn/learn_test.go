package learn

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer/internal/models"
)

// Counts are exact while the table has room. After that, it stays bounded and keeps the common words.
func TestWordCounts(t *testing.T) {
	fill := func(limit, words int) *wordCounts {
		c := newWordCounts(limit)
		for i := range words {
			c.add(fmt.Sprint("word", i))
			c.add("the")
			if i%3 == 0 {
				c.add("cat")
			}
			size := 0
			for word := range c.counts {
				size += wordSize(word)
			}
			if size != c.size || size > limit {
				t.Fatalf("after %d words, the size is %d, want %d and at most %d", i+1, c.size, size, limit)
			}
		}
		return c
	}
	if c := fill(3000, 100); len(c.counts) != 102 || *c.counts["the"] != 100 || *c.counts["cat"] != 34 || *c.counts["word7"] != 1 {
		t.Errorf("%d words, %d the, %d cat, want all", len(c.counts), *c.counts["the"], *c.counts["cat"])
	}
	c := fill(1000, 3000)
	if *c.counts["the"] != 3000 || *c.counts["cat"] != 1000 || len(c.counts) < 20 {
		t.Errorf("%d words, %d the, %d cat, want 3000 and 1000", len(c.counts), *c.counts["the"], *c.counts["cat"])
	}
	again := fill(1000, 3000)
	if !maps.EqualFunc(c.counts, again.counts, func(a, b *int) bool { return *a == *b }) {
		t.Error("the same words give other counts")
	}
	long := newWordCounts(10)
	long.add("longer than the table")
	if len(long.counts) != 0 || long.size != 0 {
		t.Errorf("%d words of size %d, want none", len(long.counts), long.size)
	}
}

// BPE learns from any number of different words in bounded memory.
func TestBPETrainingIsBounded(t *testing.T) {
	training := training{BPE: NewBPE(), counts: map[models.Pair]int{}, wordsWith: map[models.Pair][]int{}}
	training.read(func(yield func(string) bool) {
		for i := range 500 {
			if !yield(fmt.Sprintf("the %s%d", strings.Repeat("x", 100), i)) {
				return
			}
		}
	}, 2000)
	bytes := 0
	for _, w := range training.words {
		bytes += len(w.ids)
	}
	if n := training.counts[models.Pair{Left: training.ids["t"], Right: training.ids["h"]}]; bytes > 2000 || n != 500 {
		t.Errorf("words of %d bytes, th %d times, want at most 2000 bytes, and 500 times", bytes, n)
	}
}
