// Package rows makes examples for training from the rows of a user's file. Each row has a source and an answer.
//
// Open reads the file. Divide divides its rows into training and validation. Encode chooses units and makes the
// tokenizers, measures all rows, and puts rows of similar length into buckets. Batch then gives batches. Between these
// steps, a kind of task can look at the rows and change its rule. The Description collects what the user should know.
//
// Package table, one floor below, knows the formats of files.
package rows

import (
	"cmp"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
)

// A Set has the rows of a file for training and validation. It keeps their text, and encodes rows only for the batches
// that need them.
type Set struct {
	Description *Description

	// Train and Validation are set by Divide. Encode removes the rows that are too long. Held has all validation rows.
	Train, Validation, Held Part

	Symbols int // number of symbols in all training rows; Encode sets it

	format   Format
	settings *data.Settings
	seed     uint64
	from     string   // run whose tokenizers the rule has; see Open
	widths   [][2]int // Len and TargetLen of each bucket's batches
}

// Tables returns the table of the training rows and, if there is a validation file, the table of its rows.
func (s *Set) Tables() []*table.Table {
	return slices.Compact([]*table.Table{s.Train.table, s.Validation.table})
}

// Batches returns the number of training batches in one pass over the rows.
func (s *Set) Batches(size int) int {
	counts := make([]int, len(s.widths))
	for _, b := range s.Train.buckets {
		counts[b]++
	}
	batches := 0
	for _, n := range counts {
		batches += (n + size - 1) / size
	}
	return batches
}

// Batch returns some rows of one bucket as a batch. It has size rows, if necessary with padding, so that each bucket
// needs only one graph. If a row has several texts, the batch has a row for each of them.
func (s *Set) Batch(coder data.Coder, p Part, rows []int, size int) (data.Batch, error) {
	examples := make([]data.Example, len(rows))
	for i, row := range rows {
		examples[i] = p.Example(row)
	}
	b, err := coder.Batch(examples)
	if err != nil {
		return b, err
	}
	width := s.widths[p.Bucket(rows[0])]
	l := coder.Layout()
	return b.Resize(l, size*max(1, l.Texts), width[0], cmp.Or(width[1], l.TargetLen))
}
