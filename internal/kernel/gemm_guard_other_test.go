//go:build !linux

package kernel

import (
	"testing"
	"unsafe"
)

// guarded returns memory of at least size bytes. On this system nothing guards its end.
func guarded[F Float | uint16](t *testing.T, size int) []F {
	return make([]F, size/int(unsafe.Sizeof(F(0))))
}
