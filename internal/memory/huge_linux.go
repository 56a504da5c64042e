package memory

import (
	"syscall"
	"unsafe"
)

// hugePage is the size of a huge page on amd64, and on arm64 with pages of 4 KiB.
const hugePage = 2 << 20

// advise asks for huge pages for the part of memory that whole huge pages cover.
func advise(start unsafe.Pointer, bytes uintptr) {
	skip := -uintptr(start) % hugePage
	if bytes < skip+hugePage {
		return
	}
	syscall.Madvise(unsafe.Slice((*byte)(unsafe.Add(start, skip)), (bytes-skip)/hugePage*hugePage), syscall.MADV_HUGEPAGE)
}
