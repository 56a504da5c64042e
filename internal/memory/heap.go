package memory

import "runtime"

// HeapInUse returns the bytes of the heap in use, once finalizers have run and what they held on to is gone: that takes
// more than one collection. It is for tests that look for what is never freed.
func HeapInUse() int {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
