package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// readIDX reads a gzip-compressed file in MNIST's format IDX (LeCun et al., 1998), an array of N items with these
// lengths of their axes: two zeros, 8 for bytes, the number of axes, N and the lengths as four bytes each in big-endian
// order, and the bytes of the items. It returns these bytes. Any other content is an error.
func readIDX(path string, lengths ...uint32) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var content []byte
	z, err := gzip.NewReader(f)
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(z, 1<<28))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	size := 1 // bytes of an item
	for _, n := range lengths {
		size *= int(n)
	}
	header := []byte{0, 0, 8, byte(1 + len(lengths))}
	header = binary.BigEndian.AppendUint32(header, uint32(max(0, len(content)-8-4*len(lengths))/size))
	header, _ = binary.Append(header, binary.BigEndian, lengths)
	items, ok := bytes.CutPrefix(content, header)
	if !ok || len(items) == 0 || len(items)%size != 0 {
		return nil, fmt.Errorf("%s: expected an IDX file of bytes with items of shape %v, got %d bytes that begin with %v", path, lengths, len(content), content[:min(16, len(content))])
	}
	return items, nil
}
