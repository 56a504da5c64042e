package rows

import (
	"hash/maphash"
	"iter"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
)

// A Part is some rows of a table.
type Part struct {
	table   *table.Table
	numbers []int32        // index in the table of each row
	buckets []uint8        // bucket of each row; see Set.Encode
	windows []data.Example // the rows, if they are windows; see divide
	pairs   bool           // a source is two texts with a tab between them
	each    int            // if above 0: number of texts in a row; see Format
}

// Len returns the number of rows.
func (p Part) Len() int { return len(p.numbers) }

// Example returns row i.
func (p Part) Example(i int) data.Example {
	if p.windows != nil {
		return p.windows[i]
	}
	return p.example(int(p.numbers[i]))
}

// example returns row n of the table.
func (p Part) example(n int) data.Example {
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

// Sources yields the source of each row, or all its texts.
func (p Part) Sources() iter.Seq[string] { return p.fields(0) }

// Answers yields the answer of each row.
func (p Part) Answers() iter.Seq[string] { return p.fields(1) }

// fields yields the texts in one field of each row. If a row has several texts, they all are in field 0.
func (p Part) fields(field int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, n := range p.numbers {
			texts := []string{p.table.Field(int(n), field)}
			switch {
			case field == 0 && p.each > 0:
				texts = p.example(int(n)).Texts(p.each)
			case field == 0 && p.pairs:
				texts = strings.Split(texts[0], "\t")
			}
			for _, text := range texts {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// texts yields all sources, and then all answers. If a row has several texts, they all are sources.
func (p Part) texts(yield func(string) bool) {
	for field := range 2 - min(p.each, 1) {
		for text := range p.fields(field) {
			if !yield(text) {
				return
			}
		}
	}
}

// lengths are the numbers of ids of a row's source and of its answer; 0 for a label.
type lengths [2]int32

// measures are the lengths of some rows, and the number of sources and of answers with unknown symbols.
type measures struct {
	rows    []lengths
	unknown [2]int
}

// A rowHash is practically unique to the rows with one source and one answer.
type rowHash [2]uint64

func hashOf(seed maphash.Seed, e data.Example) rowHash {
	return rowHash{maphash.String(seed, e.Source), maphash.String(seed, e.Answer)}
}
