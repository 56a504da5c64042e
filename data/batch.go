package data

import (
	"fmt"
	"math"
)

// Ignore is a target that doesn't count: a loss must leave its position out.
const Ignore = -1

// Batch is Size rows of Len token ids, row-major: that of row r at position i is Inputs[r*Len+i].
//
// A row's first Lengths[r] positions are valid, the rest padding: the key lengths of attention. A row beyond the
// examples, in a short last batch, has length 0. Targets outside the valid positions are Ignore.
type Batch struct {
	Inputs  []int // (Size, Len)
	Targets []int // (Size, Len): a label of each position, or Ignore
	Lengths []int // (Size)
	Size    int
	Len     int
}

// Counted is the number of targets that count, those that aren't Ignore: the weight of this batch in a mean over many.
func (b *Batch) Counted() int { return counted(b.Targets) }

func counted(targets []int) int {
	n := 0
	for _, target := range targets {
		if target != Ignore {
			n++
		}
	}
	return n
}

// newBatch is a batch of padding alone.
func newBatch(size, length, pad int) (Batch, error) {
	if err := checkSize(size, length); err != nil {
		return Batch{}, err
	}
	return Batch{
		Inputs:  filled(size*length, pad),
		Targets: filled(size*length, Ignore),
		Lengths: make([]int, size),
		Size:    size,
		Len:     length,
	}, nil
}

func checkSize(size, length int) error {
	if size < 1 || length < 1 {
		return fmt.Errorf("a batch needs at least one row and one position, got a size of %d and a length of %d", size, length)
	}
	if length > math.MaxInt32/size {
		return fmt.Errorf("a batch holds at most %d ids, got a size of %d and a length of %d", math.MaxInt32, size, length)
	}
	return nil
}

func filled(n, value int) []int {
	values := make([]int, n)
	for i := range values {
		values[i] = value
	}
	return values
}
