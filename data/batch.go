package data

import (
	"fmt"
	"math"
	"slices"
)

// Ignore is a target that doesn't count. A loss must leave its position out.
const Ignore = -1

// A Batch has Size rows of token ids, row-major: the input of row r at position i is Inputs[r*Len+i].
//
// The first Lengths[r] inputs of row r are valid and the rest is padding; attention uses Lengths as its key lengths.
// Targets of padding are Ignore.
type Batch struct {
	Inputs        []int // (Size, Len)
	Lengths       []int // (Size)
	DecoderInputs []int // (Size, TargetLen): the id before each target; nil if the Layout has no Start
	Targets       []int // (Size, TargetLen), or (Size) if TargetLen is 0: the correct ids, or Ignore; nil from Pad

	// Documents has the number of each input's document, if rows have several. They rise along a row. No document sees
	// another, and padding is a document of its own. It is nil if each row is one document.
	Documents []int // (Size, Len)

	// Numbers has the correct number of each row, for kinds that learn numbers; nil for other kinds. NaN doesn't count.
	// Targets are then all Ignore, except for embed: see KindEmbed.
	Numbers []float32 // (Size)

	Size, Len, TargetLen int
}

// Pad returns a batch whose Inputs are these rows. It appends the id pad to every row until the row has width ids. If
// width is 0, the width is the length of the longest row, or 1 if all rows are empty. Pad returns an error if a row is
// longer than width.
//
// Pad doesn't set Targets. Set them to one class per row, for example. Or pad the rows of targets with Ignore, in a
// second call of Pad, and use the Inputs of its result.
//
// If the model uses Lengths to mask the padding, as attention does, pad may be any of the model's ids.
func Pad(rows [][]int, width, pad int) (Batch, error) {
	if width < 0 {
		return Batch{}, fmt.Errorf("the width must be at least 1, or 0 for the length of the longest row, got %d", width)
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

// Counted returns the number of targets that aren't Ignore, and of Numbers that aren't NaN. In a mean over several
// batches, use it as the weight of the batch.
func (b *Batch) Counted() int {
	n := 0
	for _, number := range b.Numbers {
		if number == number {
			n++
		}
	}
	for _, target := range b.Targets {
		if target != Ignore {
			n++
		}
	}
	return n
}

// Positions returns the position of each input in its document.
func (b *Batch) Positions() []int {
	positions := make([]int, len(b.Documents))
	for i := range positions {
		if i%b.Len > 0 && b.Documents[i] == b.Documents[i-1] {
			positions[i] = positions[i-1] + 1
		}
	}
	return positions
}

// Rows returns a batch of the rows from start to end − 1. The batch shares memory with b.
func (b *Batch) Rows(start, end int) Batch {
	return Batch{
		Inputs: rows(b.Inputs, start, end, b.Len), Lengths: rows(b.Lengths, start, end, 1),
		DecoderInputs: rows(b.DecoderInputs, start, end, b.TargetLen), Targets: rows(b.Targets, start, end, max(b.TargetLen, 1)),
		Documents: rows(b.Documents, start, end, b.Len), Numbers: rows(b.Numbers, start, end, 1),
		Size: end - start, Len: b.Len, TargetLen: b.TargetLen,
	}
}

// rows returns the values of rows, or nil if there are none.
func rows[T any](values []T, start, end, width int) []T {
	if values == nil {
		return nil
	}
	return values[start*width : end*width]
}

// Resize returns a copy of b with other dimensions, padded like the batches of a Coder with Layout l. Additional rows
// have a length of 1, and all their targets are Ignore. Resize returns an error if the copy would lose rows, symbols or
// targets.
func (b *Batch) Resize(l Layout, size, length, targetLen int) (Batch, error) {
	l.Len, l.TargetLen = length, targetLen
	out, err := newBatch(size, l)
	switch {
	case err != nil:
		return out, err
	case (l.Start >= 0) != (b.DecoderInputs != nil):
		return Batch{}, fmt.Errorf("a Layout with a Start of %d doesn't fit this batch: a batch has DecoderInputs if and only if Start is at least 0", l.Start)
	case l.Number != (b.Numbers != nil):
		return Batch{}, fmt.Errorf("a Layout with Number %t doesn't fit this batch: a batch has Numbers if and only if Number is true", l.Number)
	case size < b.Size || (targetLen == 0) != (b.TargetLen == 0):
		return Batch{}, fmt.Errorf("can't resize a batch with %d rows and targets of width %d to %d rows and width %d", b.Size, b.TargetLen, size, targetLen)
	}
	for row := range size {
		if row >= b.Size {
			out.Lengths[row] = 1
			continue
		}
		if b.Numbers != nil {
			out.Numbers[row] = b.Numbers[row]
		}
		if out.Lengths[row] = b.Lengths[row]; b.Lengths[row] > length {
			return Batch{}, fmt.Errorf("row %d has %d symbols, more than the width of %d", row, b.Lengths[row], length)
		}
		copy(out.Inputs[row*length:][:length], b.Inputs[row*b.Len:][:b.Lengths[row]])
		targets, width := b.Targets[row*max(b.TargetLen, 1):][:max(b.TargetLen, 1)], max(targetLen, 1)
		if n := copy(out.Targets[row*width:][:width], targets); slices.ContainsFunc(targets[n:], func(id int) bool { return id != Ignore }) {
			return Batch{}, fmt.Errorf("row %d has more than %d targets", row, width)
		}
		if b.DecoderInputs != nil {
			copy(out.DecoderInputs[row*width:][:width], b.DecoderInputs[row*b.TargetLen:][:b.TargetLen])
		}
	}
	return out, nil
}

// newBatch returns a batch that contains only padding.
func newBatch(size int, l Layout) (Batch, error) {
	if size < 1 || l.Len < 1 || l.TargetLen < 0 {
		return Batch{}, fmt.Errorf("a batch needs at least one row and one position, got a size of %d, a length of %d and a target length of %d", size, l.Len, l.TargetLen)
	}
	if length := max(l.Len, l.TargetLen); length > math.MaxInt32/size {
		return Batch{}, fmt.Errorf("a batch can have at most %d ids, got size %d and length %d", math.MaxInt32, size, length)
	}
	b := Batch{
		Inputs:  slices.Repeat([]int{l.Pad}, size*l.Len),
		Lengths: make([]int, size),
		Targets: slices.Repeat([]int{Ignore}, size*max(l.TargetLen, 1)),
		Size:    size, Len: l.Len, TargetLen: l.TargetLen,
	}
	if l.Number {
		b.Numbers = slices.Repeat([]float32{float32(math.NaN())}, size)
	}
	if l.Start >= 0 {
		b.DecoderInputs = slices.Repeat([]int{l.TargetPad}, size*l.TargetLen)
	}
	return b, nil
}

// A Layout describes the token ids of a Coder and the size of a row. The id of a symbol is its index in the rule's
// Alphabet, or its id in the rule's Source or Target. Special tokens follow the symbols. Start and End are -1 if the
// kind has no such token.
type Layout struct {
	Tokens       int // number of ids for Inputs; each id is less
	TargetTokens int // number of ids for DecoderInputs; 0 if the kind has no Start
	Classes      int // number of ids for Targets; 1 if a target is a number
	Len          int // positions in a row of Inputs; at most, for the kinds embed, regression and multilabel
	TargetLen    int // positions in a row of Targets; 0 if a row has a single target
	Start        int // id at the start of each row of DecoderInputs
	End          int // id after the last symbol of a sequence
	Pad          int // id that fills Inputs; for text, a symbol
	TargetPad    int // id that fills DecoderInputs

	Segments  int // 2 if a source is two texts, and otherwise 0
	Separator int // id between the two texts

	Number bool // the target of a row is a number, in Batch.Numbers

	Texts int // rows of a batch for each example that has an answer; 0 means 1
}
