// Package npy writes matrices of float32 in NumPy's format.
package npy

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Header returns what stands before the numbers of a matrix (rows, columns), which follow row by row, little-endian.
// NumPy ignores the comment; it may be empty and has no line break. Then the Header ends in a line break, the only one.
func Header(rows, columns int, comment string) string {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), } %s", rows, columns, comment)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n" // so that the numbers begin at a multiple of 64 bytes
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header
}
