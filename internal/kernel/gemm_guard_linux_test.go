package kernel

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/heed-go/heed/internal/must"
)

// guarded returns memory of at least size bytes. The page after it can't be read or written.
func guarded[F Float | uint16](t *testing.T, size int) []F {
	page := syscall.Getpagesize()
	size = (size + page - 1) / page * page
	mem := must.Get(syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE))(t)
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, syscall.Mprotect(mem[size:], syscall.PROT_NONE))
	return unsafe.Slice((*F)(unsafe.Pointer(&mem[0])), size/int(unsafe.Sizeof(F(0))))
}
