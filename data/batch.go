package data

import (
	"fmt"
	"math"
	"slices"
)

// Ignore is a target that doesn't count: a loss must leave its position out.
const Ignore = -1

// A Batch is Size rows of token ids, row-major: the input of row r at position i is Inputs[r*Len+i].
//
// A row's first Lengths[r] inputs are valid, the rest padding: the key lengths of attention. Targets of padding are
// Ignore.
type Batch struct {
	Inputs  []int // (Size, Len)
	Lengths []int // (Size)
	Before  []int // (Size, TargetLen): what comes before each target; nil but for KindSeq2Seq
	Targets []int // (Size, TargetLen), or (Size) if TargetLen is 0: what a model is to choose, or Ignore; nil from Pad

	Size, Len, TargetLen int
}

// Pad returns a batch of rows of token ids, each followed by pads up to a width. A width of 0 stands for that of the
// longest row, and at least 1. A row that is longer than the width is an error. The ids are the batch's Inputs; its
// Targets are the caller's to set: to a class for each row, say, or to the Inputs of another Pad, of rows of targets
// and with Ignore for pads.
//
// Where Lengths leave the pads out, as attention's masks do, a pad may be any id that a model has.
func Pad(rows [][]int, width, pad int) (Batch, error) {
	if width < 0 {
		return Batch{}, fmt.Errorf("a width must be at least 1, or 0 for that of the longest row, got %d", width)
	}
	if width == 0 {
		width = 1
		for _, ids := range rows {
			width = max(width, len(ids))
		}
	}
	b, err := newBatch(len(rows), Layout{Len: width, Start: -1, Pad: pad})
	if err != nil {
		return Batch{}, err
	}
	b.Targets = nil
	for r, ids := range rows {
		if len(ids) > width {
			return Batch{}, fmt.Errorf("row %d has %d ids, more than the width of %d: cut the row, or pad to a greater width", r, len(ids), width)
		}
		b.Lengths[r] = copy(b.Inputs[r*width:], ids)
	}
	return b, nil
}

// Counted returns the number of targets that count, those that aren't Ignore: the weight of this batch in a mean over
// many.
func (b *Batch) Counted() int {
	n := 0
	for _, target := range b.Targets {
		if target != Ignore {
			n++
		}
	}
	return n
}

// Rows returns the batch of the rows from one up to another, over the same memory.
func (b *Batch) Rows(from, to int) Batch {
	part := Batch{
		Inputs: b.Inputs[from*b.Len : to*b.Len], Lengths: b.Lengths[from:to],
		Size: to - from, Len: b.Len, TargetLen: b.TargetLen,
	}
	if b.Before != nil {
		part.Before = b.Before[from*b.TargetLen : to*b.TargetLen]
	}
	if b.Targets != nil { // Pad leaves them out
		width := max(b.TargetLen, 1)
		part.Targets = b.Targets[from*width : to*width]
	}
	return part
}

// Resize returns a copy of the batch, as a Coder of that Layout makes it, with another size. What it has less is
// padding, or it is an error; what it has more is padding, and rows that have one symbol of that and no target that
// counts.
func (b *Batch) Resize(l Layout, size, length, targetLen int) (Batch, error) {
	l.Len, l.TargetLen = length, targetLen
	to, err := newBatch(size, l)
	if err != nil {
		return to, err
	}
	if (l.Start >= 0) != (b.Before != nil) {
		return Batch{}, fmt.Errorf("a batch of another kind can't have a Layout with a Start of %d", l.Start)
	}
	if size < b.Size || (targetLen == 0) != (b.TargetLen == 0) {
		return Batch{}, fmt.Errorf("a batch of %d rows with targets of width %d can't have %d and %d", b.Size, b.TargetLen, size, targetLen)
	}
	for row := range size {
		if row >= b.Size {
			to.Lengths[row] = 1
			continue
		}
		if to.Lengths[row] = b.Lengths[row]; b.Lengths[row] > length {
			return Batch{}, fmt.Errorf("row %d has %d symbols, more than the width of %d", row, b.Lengths[row], length)
		}
		copy(to.Inputs[row*length:][:length], b.Inputs[row*b.Len:][:b.Lengths[row]])
		targets, width := b.Targets[row*max(b.TargetLen, 1):][:max(b.TargetLen, 1)], max(targetLen, 1)
		if n := copy(to.Targets[row*width:][:width], targets); slices.ContainsFunc(targets[n:], func(id int) bool { return id != Ignore }) {
			return Batch{}, fmt.Errorf("row %d has more than %d targets", row, width)
		}
		if b.Before != nil {
			copy(to.Before[row*width:][:width], b.Before[row*b.TargetLen:][:b.TargetLen])
		}
	}
	return to, nil
}

// newBatch returns a batch of padding alone.
func newBatch(size int, l Layout) (Batch, error) {
	if err := checkSize(size, l.Len, l.TargetLen); err != nil {
		return Batch{}, err
	}
	b := Batch{
		Inputs:  filled(size*l.Len, l.Pad),
		Lengths: make([]int, size),
		Targets: filled(size*max(l.TargetLen, 1), Ignore),
		Size:    size, Len: l.Len, TargetLen: l.TargetLen,
	}
	if l.Start >= 0 {
		b.Before = filled(size*l.TargetLen, l.TargetPad)
	}
	return b, nil
}

func checkSize(size, length, targetLen int) error {
	if size < 1 || length < 1 || targetLen < 0 {
		return fmt.Errorf("a batch needs at least one row and one position, got a size of %d and a length of %d, and targets of %d", size, length, targetLen)
	}
	if length = max(length, targetLen); length > math.MaxInt32/size {
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
