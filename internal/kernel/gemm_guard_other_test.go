//go:build !linux

package kernel

import (
	"testing"
	"unsafe"
)

// guarded returns memory of at least size bytes. Nothing guards its end here.
func guarded[F Float](t *testing.T, size int) []F {
	return make([]F, size/int(unsafe.Sizeof(F(0))))
}
