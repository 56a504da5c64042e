//go:build mpi && cgo

package mpi

import (
	"slices"
	"testing"
)

// TestPieces cuts slices that are too long for one MPI message.
func TestPieces(t *testing.T) {
	var got []int
	large := make([]byte, 2*most+5) // no page of it is touched
	pieces([][]byte{nil, large[:7], {}, large, large[:most]}, func(b []byte) error {
		got = append(got, len(b))
		return nil
	})
	if want := []int{7, most, most, 5, most}; !slices.Equal(got, want) {
		t.Errorf("pieces of %v bytes, want %v", got, want)
	}
}
