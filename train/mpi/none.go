//go:build !mpi || !cgo

package mpi

import (
	"errors"

	"github.com/heed-go/heed/train"
)

// Join returns the Group of the processes that an MPI launcher has started with this one, and what to call at the end
// of the program: it waits for the others. In a program that was started alone, the Group is nil. Call it once.
func Join() (group train.Group, leave func(), err error) {
	if _, is := Rank(); is && started() != "1" {
		return nil, nil, errors.New("mpi: an MPI launcher has started this program, which was built without MPI: " +
			"build it with CGO_ENABLED=1 go build -tags mpi, or start it without a launcher")
	}
	return nil, func() {}, nil
}
