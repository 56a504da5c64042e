//go:build mpi && cgo

package mpi

import (
	"slices"
	"testing"
)

// TestPieces checks that slices too long for one MPI message are cut.
func TestPieces(t *testing.T) {
	var got []int
	large := make([]byte, 2*maxMessage+5) // nothing reads or writes it, so it needs no physical memory
	pieces([][]byte{nil, large[:7], {}, large, large[:maxMessage]}, func(b []byte) error {
		got = append(got, len(b))
		return nil
	})
	if want := []int{7, maxMessage, maxMessage, 5, maxMessage}; !slices.Equal(got, want) {
		t.Errorf("pieces of %v bytes, want %v", got, want)
	}
}
