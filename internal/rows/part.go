package rows

import (
	"iter"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
)

// A Part is some rows of a table.
type Part struct {
	table   *table.Table
	numbers []int32 // index in the table of each row
	buckets []uint8 // bucket of each row; see Set.Encode
	pairs   bool    // a source is two texts with a tab between them
}

// Len returns the number of rows.
func (p Part) Len() int { return len(p.numbers) }

// Example returns row i.
func (p Part) Example(i int) data.Example {
	n := int(p.numbers[i])
	return data.Example{Source: p.table.Field(n, 0), Answer: p.table.Field(n, 1)}
}

// Examples returns all rows.
func (p Part) Examples() []data.Example {
	examples := make([]data.Example, p.Len())
	for i := range examples {
		examples[i] = p.Example(i)
	}
	return examples
}

// Bucket returns the number of the bucket of row i. All rows of a batch must be of one bucket.
func (p Part) Bucket(i int) int { return int(p.buckets[i]) }

// Sources yields the source of each row, or both texts of a pair.
func (p Part) Sources() iter.Seq[string] { return p.fields(0) }

// Answers yields the answer of each row.
func (p Part) Answers() iter.Seq[string] { return p.fields(1) }

// fields yields the texts in one field of each row.
func (p Part) fields(field int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, n := range p.numbers {
			text := p.table.Field(int(n), field)
			if first, second, ok := strings.Cut(text, "\t"); ok && p.pairs && field == 0 {
				if !yield(first) {
					return
				}
				text = second
			}
			if !yield(text) {
				return
			}
		}
	}
}

// texts yields all sources, and then all answers.
func (p Part) texts(yield func(string) bool) {
	for field := range 2 {
		for text := range p.fields(field) {
			if !yield(text) {
				return
			}
		}
	}
}
