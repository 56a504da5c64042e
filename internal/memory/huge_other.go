//go:build !linux

package memory

import "unsafe"

// advise does nothing, because only Linux takes this advice.
func advise(unsafe.Pointer, uintptr) {}
