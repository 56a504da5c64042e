package memory

import "unsafe"

// smallestHuge is the size in bytes from which Huge asks for huge pages. Smaller memory seldom has a whole huge page.
const smallestHuge = 4 << 20

// Huge returns x. If x is large, Huge asks the system for huge pages, in which a processor finds data faster. Use it
// for new memory that lives long: memory that has been written keeps its small pages for a while. Go's runtime gives
// pages back to the system only after the garbage collector has freed x, so it leaves huge pages as they are.
//
// Only Linux takes the advice. If it refuses, the memory works as before.
func Huge[T any](x []T) []T {
	if bytes := uintptr(len(x)) * unsafe.Sizeof(*new(T)); bytes >= smallestHuge {
		advise(unsafe.Pointer(unsafe.SliceData(x)), bytes)
	}
	return x
}
