package main

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// readIDX reads an array of bytes in MNIST's format IDX (LeCun et al., 1998): two zeros, 8 for bytes, the number of
// axes, the length of each axis as four bytes in big-endian order, and the array. For any other content, and for
// missing or additional bytes, it returns an error. It allocates memory only for bytes that r has.
func readIDX(r io.Reader) (shape []int, data []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, nil, fmt.Errorf("the file has no IDX header of four bytes: %w", err)
	}
	if head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] < 1 || head[3] > 3 {
		return nil, nil, fmt.Errorf("an IDX file of bytes must begin with 0, 0, 8 and a number of axes from 1 to 3, got %v", head)
	}
	const maxBytes = 1 << 28 // bytes
	size := 1
	for range head[3] {
		var n uint32
		if err := binary.Read(r, binary.BigEndian, &n); err != nil {
			return nil, nil, fmt.Errorf("the file's header is cut short: %w", err)
		}
		if n == 0 || uint64(n) > uint64(maxBytes/size) {
			return nil, nil, fmt.Errorf("axes must have lengths above 0 and a product of at most %d, got %d after %v", maxBytes, n, shape)
		}
		shape, size = append(shape, int(n)), size*int(n)
	}
	if data, err = io.ReadAll(io.LimitReader(r, int64(size)+1)); err != nil {
		return nil, nil, fmt.Errorf("can't read its bytes: %w", err)
	}
	if len(data) > size {
		return nil, nil, fmt.Errorf("the file has more than the %d bytes of shape %v", size, shape)
	}
	if len(data) < size {
		return nil, nil, fmt.Errorf("the file must have %d bytes of shape %v, but ends after %d", size, shape, len(data))
	}
	return shape, data, nil
}

// readGzip reads a gzip-compressed IDX file.
func readGzip(path string) (shape []int, data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		shape, data, err = readIDX(z)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return shape, data, nil
}
