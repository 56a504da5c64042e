package data

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// Documents returns the number of documents: of lines in JSONL files, and of other files. A text of one file that isn't
// JSONL is one document.
func (t *Text) Documents() int { return max(1, len(t.starts)) }

// Pack makes batches have Documents, so that a window may have several documents, or parts of documents, that don't see
// each other. The last symbol of a document then has no target, because the next one belongs to another document. The
// text's checksum then also covers where documents begin.
func (t *Text) Pack() {
	t.packed = true
	t.sum = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, t.sum, t.starts)))
}

// beginDocuments notes which documents begin in symbol i, a character or token that ends at the byte offset end. Call
// it for all symbols in their order.
func (t *Text) beginDocuments(end int64, i int) {
	for n := len(t.documents); n < len(t.starts) && t.starts[n] < end; n++ {
		t.documents = append(t.documents, i)
	}
}

// newBatch returns an empty batch of windows.
func (t *Text) newBatch(size, length int) (Batch, error) {
	b, err := newBatch(size, Layout{Len: length, TargetLen: length, Start: -1})
	if err == nil && t.packed {
		b.Documents = make([]int, size*length)
	}
	return b, err
}

// number numbers the documents of the window at start, which is a row of the batch.
func (t *Text) number(b *Batch, row, start int) {
	next, found := slices.BinarySearch(t.documents, start)
	if found {
		next++
	}
	number := 0
	for i := range b.Len {
		for next < len(t.documents) && t.documents[next] <= start+i {
			number, next = number+1, next+1
		}
		b.Documents[row*b.Len+i] = number
		if next < len(t.documents) && t.documents[next] == start+i+1 {
			b.Targets[row*b.Len+i] = Ignore
		}
	}
}
