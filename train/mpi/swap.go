//go:build mpi && cgo

package mpi

/*
#cgo pkg-config: ompi
#include <mpi.h>

static int begin(int send, void *b, int n, int peer, MPI_Request *r) {
	if (send)
		return MPI_Isend(b, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, r);
	return MPI_Irecv(b, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, r);
}

static int finish(int n, MPI_Request *r) {
	return MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}
*/
import "C"

import (
	"cmp"
	"fmt"
	"runtime"
	"unsafe"
)

// swap implements group.Swap. It sends and receives all messages at once; the Go binding has no call for that.
func swap(peer int, send, receive [][]byte) error {
	var pins runtime.Pinner // until MPI is done with the slices
	defer pins.Unpin()
	var requests []C.MPI_Request
	begin := func(direction C.int) func(b []byte) error {
		return func(b []byte) error {
			pins.Pin(&b[0])
			var r C.MPI_Request
			err := failure(C.begin(direction, unsafe.Pointer(&b[0]), C.int(len(b)), C.int(peer), &r))
			requests = append(requests, r)
			return err
		}
	}
	if err := cmp.Or(pieces(receive, begin(0)), pieces(send, begin(1))); err != nil || len(requests) == 0 {
		return err
	}
	return failure(C.finish(C.int(len(requests)), &requests[0]))
}

func failure(code C.int) error {
	if code != C.MPI_SUCCESS {
		return fmt.Errorf("a call failed with MPI's error %d", code)
	}
	return nil
}
