package memory

import "runtime"

// HeapInUse returns the bytes of the heap in use. It collects garbage several times first, so that finalizers run and
// the objects they kept are freed. Tests use it to find leaks.
func HeapInUse() int {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
