//go:build !mpi || !cgo

package mpi

import (
	"errors"

	"github.com/heed-go/heed/train"
)

// Join returns the Group of the processes that an MPI launcher has started, and a function to call at the end of the
// program, which waits for the other processes. Without a launcher, the Group is nil. Call Join once.
func Join() (group train.Group, leave func(), err error) {
	if _, launched := Rank(); launched && started() != "1" {
		return nil, nil, errors.New("mpi: an MPI launcher has started this program, but it was built without MPI: " +
			"build it with CGO_ENABLED=1 go build -tags mpi, or start it without a launcher")
	}
	return nil, func() {}, nil
}
